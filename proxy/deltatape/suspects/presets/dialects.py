"""Presets for the events of one dialect: items, blocks, complete calls."""

from deltatape.suspects.client import ClientModel, Preset
from deltatape.suspects.mistakes import BLOCKS, ITEMS

IN_ITEMS = (
    Preset(
        name="deltas-keyed-by-call-id",
        clients=(
            ClientModel(key="call-id", incomplete="dropped"),
            ClientModel(key="call-id"),
            ClientModel(key="delta-item-id"),
        ),
        place=1,
        summary="It looks for the call id in argument deltas, where there is none.",
        does="""
            Argument deltas carry `item_id` and `output_index`, neither name nor call_id. The call
            has no name, a filter drops it, nothing is run and nothing is said.
        """,
        example=(
            "let call = calls.find((c) => c.id === event.call_id)"
            ' ?? push({ id: event.call_id, name: "" })\n'
            "call.arguments += event.delta\n"
            "calls.filter((c) => c.id && c.name)"
        ),
        fix="Take id, name and arguments from the item of `response.output_item.done`.",
        references=(
            "https://platform.openai.com/docs/api-reference/responses-streaming",
            "https://github.com/mcp-use/mcp-use/issues/2593",
        ),
    ),
    Preset(
        name="arguments-at-item-added",
        clients=(ClientModel(source="added"),),
        families=ITEMS,
        place=2,
        summary="It takes the arguments from `response.output_item.added`.",
        does="""
            At that event the item has its name and call_id, and its arguments are still empty.
            Every call runs without arguments.
        """,
        example='if (event.type === "response.output_item.added") calls.push(event.item)',
        fix="Use `response.output_item.done`, whose item is whole.",
        references=("https://platform.openai.com/docs/api-reference/responses-streaming",),
    ),
    Preset(
        name="final-output-only",
        clients=(ClientModel(source="completed"),),
        summary="It takes calls from `response.completed` only.",
        does="""
            Some backends list nothing there, and a response that is incomplete or cut has no such
            event.
        """,
        example='if (event.type === "response.completed") calls = event.response.output',
        fix="""
            Collect the items of `response.output_item.done`; use the last event for what did not
            come before.
        """,
        references=(
            "https://github.com/router-for-me/CLIProxyAPI/issues/2626",
            "https://github.com/open-webui/open-webui/issues/27800",
            "https://github.com/mcowger/plexus/issues/644",
        ),
    ),
    Preset(
        name="deltas-only",
        clients=(ClientModel(source="deltas"),),
        summary="It reads only argument deltas.",
        does="""
            Some backends send no deltas, or encrypted ones, and the arguments with the item that is
            done.
        """,
        example=(
            'if (event.type === "response.function_call_arguments.delta")'
            " call.arguments += event.delta"
        ),
        fix="Let the item of `response.output_item.done` win over the deltas.",
        references=(
            "https://github.com/lidge-jun/opencodex/issues/4652",
            "https://github.com/looplj/axonhub/issues/2486",
            "https://github.com/openclaw/openclaw/issues/90585",
        ),
    ),
    Preset(
        name="arguments-done-only",
        clients=(ClientModel(source="arguments-done"),),
        summary="It takes arguments from `response.function_call_arguments.done` only.",
        does="Some backends leave that event out.",
        example='if (event.type === "response.function_call_arguments.done") run(event.arguments)',
        fix="Use `response.output_item.done`.",
        references=("https://platform.openai.com/docs/api-reference/responses-streaming",),
    ),
    Preset(
        name="item-done-only",
        clients=(ClientModel(source="item-done"),),
        summary="It takes calls from `response.output_item.done` only.",
        does="Some backends leave that event out and fill the last one.",
        example='if (event.type === "response.output_item.done") calls.push(event.item)',
        fix="Fall back to the output of `response.completed`.",
        references=(
            "https://github.com/anomalyco/opencode/issues/44893",
            "https://github.com/anomalyco/opencode/issues/46084",
        ),
    ),
    Preset(
        name="correlates-by-item-id",
        clients=(ClientModel(key="item-id"),),
        summary="It tells items apart only by their id.",
        does="Some backends give an item another id in every event, or none when it is done.",
        example="items[event.item_id].arguments += event.delta",
        fix="Use `output_index` as the key, and answer to `call_id`.",
        references=(
            "https://github.com/BerriAI/litellm/issues/30072",
            "https://github.com/vercel/ai/issues/18548",
            "https://github.com/caozhiyuan/copilot-api/issues/72",
        ),
    ),
    Preset(
        name="wrapped-item-type",
        clients=(ClientModel(kinds="wrapped"),),
        summary="It filters items by a type that the API does not have.",
        does="""
            `function_tool_call` is what a wrapper calls it; on the wire it is `function_call`. The
            filter matches nothing.
        """,
        example='items.filter((item) => item.type === "function_tool_call")',
        fix="Filter by `function_call`.",
        references=("https://platform.openai.com/docs/api-reference/responses-streaming",),
    ),
    Preset(
        name="answers-to-item-id",
        clients=(ClientModel(id="item"),),
        summary="It answers to the item's id instead of its call_id.",
        does="Items have two ids. The result must name `call_id`; `id` is internal.",
        example='outputs.push({ type: "function_call_output", call_id: item.id, output })',
        fix="Use `item.call_id`.",
        references=("https://github.com/rbb-dev/Open-WebUI-OpenRouter-pipe/issues/54",),
    ),
)

IN_BLOCKS = (
    Preset(
        name="current-block-only",
        clients=(ClientModel(key="current"), ClientModel(key="single")),
        families=BLOCKS,
        place=8,
        summary="It appends every delta to the block that began last.",
        does="""
            Gateways interleave blocks, or leave out where one begins; every delta has its index.
        """,
        example='case "content_block_delta": current.input += delta.partial_json',
        fix="Key blocks by `index`.",
        references=(
            "https://github.com/crmne/ruby_llm/issues/711",
            "https://github.com/NousResearch/hermes-agent/issues/108209",
        ),
    ),
    Preset(
        name="start-input-used",
        clients=(ClientModel(source="added"),),
        families=BLOCKS,
        place=3,
        summary="It takes the input of the event that starts a block.",
        does="There it is `{}`; the real one comes in deltas. Every call runs without arguments.",
        example='if event.type == "content_block_start": run(event.content_block.input)',
        fix="Append the `partial_json` of all deltas and parse it when the block stops.",
        references=(
            "https://github.com/crewAIInc/crewAI/issues/6152",
            "https://github.com/cubeplexai/cubeloop/issues/108",
        ),
    ),
    Preset(
        name="start-input-prefixed",
        clients=(ClientModel(source="added+deltas"),),
        summary="It puts the input of the opening event in front of the deltas.",
        does='`{}` and then the real arguments, `{}{"a":1}`; or the same arguments twice.',
        example="""
            block.text = JSON.stringify(block.input)
            block.text += delta.partial_json
        """,
        fix="Begin with an empty buffer; use the opening event's input only if no delta comes.",
        references=(
            "https://github.com/BerriAI/litellm/issues/4537",
            "https://github.com/openai/openai-agents-js/issues/712",
        ),
    ),
    Preset(
        name="uses-calls-at-their-end-only",
        clients=(ClientModel(emit="at-close"),),
        summary="It uses a call only when an event ends it.",
        does="""
            Gateways leave out `content_block_stop` or `response.output_item.done`; the call is
            never used.
        """,
        example='case "content_block_stop": emit(block)',
        fix="Use what is left when the message ends normally.",
        references=(
            "https://docs.anthropic.com/en/docs/build-with-claude/streaming",
            "https://github.com/vercel/ai/issues/15879",
        ),
    ),
)

IN_ONE_PIECE = (
    Preset(
        name="calls-overwritten",
        clients=(ClientModel(whole="overwrite"),),
        summary="It assigns the list of calls with every event that has one.",
        does="Parallel calls come in several events; only the last event's are left.",
        example="if message.tool_calls: calls = message.tool_calls",
        fix="Append to the list.",
        references=(
            "https://github.com/ollama/ollama/issues/11633",
            "https://ai.google.dev/gemini-api/docs/function-calling",
        ),
    ),
    Preset(
        name="nameless-parts-ignored",
        clients=(ClientModel(whole="nameless-dropped"),),
        summary="It drops parts without a name.",
        does="""
            Streamed arguments come in parts without a name, as `partialArgs`. The call runs without
            arguments.
        """,
        example="if part.function_call and part.function_call.name: ...",
        fix="Add such parts to the open call.",
        references=(
            "https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling",
        ),
    ),
    Preset(
        name="stops-at-empty-content",
        clients=(ClientModel(stop="blank"),),
        summary="It stops at the first line without text.",
        does="Lines with calls have no text, the last line has none either.",
        example='if not line["message"]["content"]: break',
        fix='Read on to `"done": true`.',
        references=("https://github.com/ollama/ollama/issues/7881",),
    ),
)
