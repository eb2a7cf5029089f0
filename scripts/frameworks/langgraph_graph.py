"""LangGraph: a graph of one's own, with a node that hands over to another."""

from typing import Annotated

from chat_models import chat_model
from common import SYSTEM, main
from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode, tools_condition
from langgraph.types import Command


@tool
def transfer_to_forecaster(
    state: Annotated[dict, InjectedState], call: Annotated[str, InjectedToolCallId]
) -> Command:
    """Hand over to the forecaster."""
    messages = [*state["messages"], ToolMessage("transferred", tool_call_id=call)]
    return Command(goto="forecaster", graph=Command.PARENT, update={"messages": messages})


def node(model, system):
    """A node that asks the model."""

    async def ask(state):
        return {"messages": [await model.ainvoke([("system", system), *state["messages"]])]}

    return ask


def loop(talk, tools, system=SYSTEM):
    """A graph in which a model calls tools until it has an answer."""
    graph = StateGraph(MessagesState)
    graph.add_node("model", node(chat_model(talk).bind_tools(tools), system))
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph


async def run(graph, talk):
    """Hold a conversation; the graph keeps it."""
    config = {"configurable": {"thread_id": "1"}}
    for prompt in talk.prompts:
        asked = {"messages": [("user", prompt)]}
        if talk.streamed:
            async for _ in graph.astream_events(asked, config, version="v2"):
                pass
        else:
            await graph.ainvoke(asked, config)
    state = await graph.aget_state(config)
    return state.values["messages"][-1].text


async def converse(talk):
    """Hold a conversation."""
    graph = loop(talk, talk.tools).compile(checkpointer=InMemorySaver())
    return await run(graph, talk)


async def handoff(talk):
    """One graph hands over to another with all of its history."""
    parent = StateGraph(MessagesState)
    first = loop(talk, [transfer_to_forecaster]).compile()
    parent.add_node("reception", first, destinations=("forecaster",))
    parent.add_node("forecaster", loop(talk, talk.tools, "You tell the weather.").compile())
    parent.add_edge(START, "reception")
    return await run(parent.compile(checkpointer=InMemorySaver()), talk)


main(converse, handoff=handoff)
