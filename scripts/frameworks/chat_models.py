"""LangChain's chat models, for LangChain and LangGraph."""

from common import ANTHROPIC, CHAT, GEMINI, MODEL

if ANTHROPIC:
    from langchain_anthropic import ChatAnthropic
elif GEMINI:
    from langchain_google_genai import ChatGoogleGenerativeAI
else:
    from langchain_openai import ChatOpenAI


def chat_model(talk):
    """The chat model of the dialect."""
    if ANTHROPIC:
        budget = {"type": "enabled", "budget_tokens": 1024}
        thinking = {"thinking": budget} if talk.reasoning else {}
        return ChatAnthropic(model=MODEL, max_tokens=2048, streaming=talk.streamed, **thinking)
    if GEMINI:
        thinking = {"include_thoughts": True, "thinking_budget": 1024} if talk.reasoning else {}
        return ChatGoogleGenerativeAI(model=MODEL, **thinking)
    thinking = {}
    if talk.reasoning and not CHAT:
        thinking["reasoning"] = {"effort": "low", "summary": "auto"}
        thinking["include"] = ["reasoning.encrypted_content"]
    return ChatOpenAI(
        model=MODEL,
        use_responses_api=not CHAT,
        streaming=talk.streamed,
        stream_usage=True,
        **thinking,
    )
