"""Presets that mix up calls, damage ids and names, or drop calls."""

from deltatape.suspects.client import ClientModel, Preset
from deltatape.suspects.mistakes import CHAT, ITEMS

WHICH_CALL = (
    Preset(
        name="single-current-call",
        clients=(
            ClientModel(key="current"),
            ClientModel(key="single"),
            ClientModel(key="current", emit="on-tool-calls"),
            ClientModel(key="single", emit="on-tool-calls"),
            ClientModel(key="current", name="at-opening"),
            ClientModel(key="single", name="at-opening"),
            ClientModel(key="current", name="at-opening", emit="on-finish"),
        ),
        families=CHAT | ITEMS,
        place=4,
        summary="It keeps one current call; the next id replaces it.",
        does="""
            One variable holds the call under construction. A fragment with an id begins it anew,
            other fragments are appended. Interleaved fragments end up in the wrong call; where a
            server repeats the id on every fragment, every fragment becomes a call. Some put the
            call before into a list, others lose it.
        """,
        example="""
            if (!current || fragment.id) current = start(fragment)
            else current.arguments += fragment.function.arguments
        """,
        fix="""
            Keep a map from `index` to call, append each fragment to the call of its index, and use
            all of them when the stream has ended.
        """,
        references=(
            "https://platform.openai.com/docs/guides/function-calling",
            "https://github.com/endolith/open-interpreter/issues/315",
            "https://github.com/langchain4j/langchain4j/issues/4921",
            "https://github.com/crmne/ruby_llm/issues/711",
        ),
    ),
    Preset(
        name="each-event-is-a-call",
        clients=(
            ClientModel(key="none"),
            ClientModel(key="none", entries="with-arguments"),
            ClientModel(key="none", incomplete="dropped"),
            ClientModel(key="none", parse="drop"),
            ClientModel(key="none", incomplete="dropped", parse="drop"),
        ),
        place=5,
        summary="It treats every event as a whole call.",
        does="""
            Each delta is passed on, or run, as it comes: the first has a name and no arguments, the
            others arguments and no name. Where a guard drops what is not whole, nothing is left of
            a call that comes in fragments.
        """,
        example="""
            for fragment in delta["tool_calls"]:
                run(fragment["function"].get("name"), fragment["function"].get("arguments"))
        """,
        fix="Append the fragments of one `index` to one call; run it after the end of the stream.",
        references=(
            "https://platform.openai.com/docs/guides/function-calling",
            "https://github.com/ollama/ollama/issues/7881",
        ),
    ),
    Preset(
        name="index-ignored",
        clients=(ClientModel(key="one"),),
        summary="It has one buffer for all calls.",
        does="""
            Name and id are those of the last call, the arguments those of all calls, one behind the
            other.
        """,
        example="""
            for fragment in delta["tool_calls"]:
                call["arguments"] += fragment["function"]["arguments"]
        """,
        fix="Keep one buffer per `index`.",
        references=(
            "https://platform.openai.com/docs/guides/function-calling",
            "https://github.com/BerriAI/litellm/issues/33678",
        ),
    ),
    Preset(
        name="strict-index",
        clients=(ClientModel(key="strict"),),
        summary="It fails if a fragment has no index.",
        does="""
            Some servers leave out `index`, or send null. Looking it up throws, and the stream is
            lost.
        """,
        example=(
            """calls[fragment["index"]]["arguments"] += fragment["function"]["arguments"]"""
            "    # KeyError: 'index'"
        ),
        fix="""
            Without an index, continue the call before; start a new one if the fragment has another
            id or a name.
        """,
        references=(
            "https://github.com/ollama/ollama/issues/7881",
            "https://github.com/EricLBuehler/mistral.rs/issues/1507",
            "https://github.com/openai/openai-python/issues/3246",
        ),
    ),
    Preset(
        name="index-as-list-position",
        clients=(ClientModel(key="list"),),
        summary="It uses the index as a position in its list of calls.",
        does="""
            Gateways count a text block as index 0, so that the only call has index 1: there is
            nothing at that position yet.
        """,
        example="calls[fragment.index].function.arguments += ...    // undefined at 1",
        fix="Use a map from index to call.",
        references=(
            "https://github.com/BerriAI/litellm/issues/5231",
            "https://github.com/aws-samples/bedrock-access-gateway/issues/134",
        ),
    ),
    Preset(
        name="keyed-by-id",
        clients=(ClientModel(key="id"),),
        summary="It stores fragments by id, but only the first fragment has one.",
        does="""
            The first fragment makes a call without arguments; all others go to a second one,
            without id and name, or nowhere.
        """,
        example='calls[fragment.get("id")]["arguments"] += fragment["function"]["arguments"]',
        fix="Key by `index`; take the id from the first fragment that has one.",
        references=("https://platform.openai.com/docs/guides/function-calling",),
    ),
    Preset(
        name="position-as-key",
        clients=(ClientModel(key="position"),),
        summary="It uses the position in the event as the number of the call.",
        does="""
            Each event's list begins at 0, whatever calls it is about. Calls that come one per event
            overwrite each other or are glued together.
        """,
        example="delta.tool_calls.forEach((call, i) => { calls[i] = merge(calls[i], call) })",
        fix="Use the index of the fragment; where calls come whole, append them to a list.",
        references=(
            "https://github.com/su-kaka/gcli2api/issues/406",
            "https://github.com/omnigent-ai/omnigent/issues/28",
        ),
    ),
    Preset(
        name="keyed-by-name",
        clients=(ClientModel(key="name"),),
        place=103,
        summary="It stores calls by the name of their function.",
        does="""
            Two calls of one function become one. In a stream of fragments only the first has a
            name.
        """,
        example='calls[part["functionCall"]["name"]] = part["functionCall"]["args"]',
        fix="Keep calls in a list, or key by index.",
        references=("https://github.com/NousResearch/hermes-agent/issues/11863",),
    ),
    Preset(
        name="first-entry-only",
        clients=(ClientModel(entries="first"),),
        place=7,
        summary="It reads only the first entry of an event.",
        does="""
            An event may bring several entries in `tool_calls`, or several parts; all but the first
            are lost.
        """,
        example="const fragment = delta.tool_calls[0]",
        fix="Loop over the entries.",
        references=(
            "https://github.com/langchain4j/langchain4j/issues/4921",
            "https://github.com/endolith/open-interpreter/issues/315",
            "https://github.com/BerriAI/litellm/issues/27638",
        ),
    ),
)

NAMES = (
    Preset(
        name="late-name-ignored",
        clients=(ClientModel(name="at-opening"),),
        summary="It looks for the name only in the fragment that opens a call.",
        does="""
            Some servers send the name after the first arguments, or after an empty one. The call
            stays without a name.
        """,
        example='calls[index] ??= { name: fragment.function.name, arguments: "" }',
        fix="Set the name whenever a fragment has one and the call has none.",
        references=(
            "https://github.com/vercel/ai/issues/15879",
            "https://github.com/jjang-ai/vmlx/issues/244",
            "https://github.com/OpenRouterTeam/ai-sdk-provider/issues/118",
        ),
    ),
    Preset(
        name="name-overwritten-by-null",
        clients=(ClientModel(name="null-too"),),
        summary="It overwrites the name with that of fragments which have none.",
        does="Later fragments have no name, or a null. The call ends up without one.",
        example="call.name = fragment.function.name     // undefined from the second fragment on",
        fix="Set the name only if the fragment has one.",
        references=("https://github.com/sgl-project/sglang/issues/35542",),
    ),
    Preset(
        name="name-overwritten-by-empty",
        clients=(ClientModel(name="empty-too"),),
        summary="It overwrites the name with an empty one.",
        does='Some servers repeat `"name":""` on every fragment: `??` treats it as a value.',
        example="call.name = fragment.function.name ?? call.name",
        fix="Write `fragment.function.name || call.name`.",
        references=(
            "https://github.com/zed-industries/zed/issues/53605",
            "https://github.com/jjang-ai/vmlx/issues/244",
        ),
    ),
    Preset(
        name="id-overwritten-by-null",
        clients=(ClientModel(id="null-too"),),
        summary="It overwrites the id with that of fragments which have none.",
        does="""
            Later fragments have no id. The call ends up without one, its result belongs to nothing.
        """,
        example="call.id = fragment.id                  // undefined from the second fragment on",
        fix="Set the id only if the fragment has one.",
        references=("https://github.com/sgl-project/sglang/issues/35542",),
    ),
    Preset(
        name="id-overwritten-by-empty",
        clients=(ClientModel(id="empty-too"),),
        summary="It overwrites the id with an empty one.",
        does='Some servers repeat `"id":""` on every fragment: `??` treats it as a value.',
        example="call.id = fragment.id ?? call.id",
        fix="Write `fragment.id || call.id`.",
        references=(
            "https://github.com/JetBrains/koog/issues/1900",
            "https://github.com/spring-projects/spring-ai/issues/6369",
            "https://github.com/langchain-ai/langchain/issues/35414",
        ),
    ),
    Preset(
        name="name-concatenated",
        clients=(ClientModel(name="concatenate"),),
        summary="It appends names, as it appends arguments.",
        does="""
            Servers that repeat the name on every fragment make `get_timeget_time` of it: an unknown
            tool.
        """,
        example='call["name"] += fragment["function"].get("name") or ""',
        fix="Set the name once.",
        references=(
            "https://github.com/NousResearch/hermes-agent/issues/8259",
            "https://github.com/bytedance/deer-flow/issues/654",
        ),
    ),
    Preset(
        name="id-concatenated",
        clients=(ClientModel(id="concatenate"),),
        summary="It appends ids, as it appends arguments.",
        does="""
            Servers that repeat the id on every fragment make `c1c1c1` of it; its result belongs to
            nothing.
        """,
        example='call["id"] += fragment.get("id") or ""',
        fix="Set the id once.",
        references=(
            "https://github.com/JetBrains/koog/issues/2052",
            "https://github.com/AstrBotDevs/AstrBot/issues/7735",
        ),
    ),
    Preset(
        name="id-dropped",
        clients=(ClientModel(id="drop"),),
        summary="It discards the ids, and makes up its own or none.",
        does="The results name ids that the provider never gave.",
        example='calls.append({"name": name, "arguments": arguments})',
        fix="Keep the id of the first fragment and answer to it.",
        references=("https://platform.openai.com/docs/guides/function-calling",),
    ),
    Preset(
        name="drops-without-id-or-name",
        clients=(ClientModel(incomplete="dropped"),),
        summary="It silently drops calls without id or name.",
        does="A filter against broken calls also drops those of servers that send no ids.",
        example="calls.filter((call) => call.id && call.name)",
        fix="Make up an id where the server sends none, and report what is dropped.",
        references=(
            "https://github.com/BerriAI/litellm/issues/33223",
            "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/830",
        ),
    ),
    Preset(
        name="equal-calls-dropped",
        clients=(ClientModel(repeats="dropped"),),
        summary="It drops calls that equal an earlier one.",
        does="""
            Two calls with equal name and arguments are treated as one call that was sent twice; a
            model may want both.
        """,
        example="const unique = new Map(calls.map((call) => [call.name + call.arguments, call]))",
        fix="Drop a call only if its id repeats.",
        references=("https://github.com/allenhutchison/obsidian-gemini/issues/230",),
    ),
    Preset(
        name="legacy-function-call-ignored",
        clients=(ClientModel(kinds="no-legacy"),),
        summary="It does not read `function_call`.",
        does="""
            Older servers stream one call per answer as `delta.function_call`, without index and id.
        """,
        example='delta.get("tool_calls")                # and nothing else',
        fix="Read `delta.function_call` as the one call of the answer.",
        references=("https://github.com/can1357/oh-my-pi/issues/1692",),
    ),
    Preset(
        name="custom-tool-ignored",
        clients=(ClientModel(kinds="no-custom"),),
        summary="It does not read the input of custom tools.",
        does="""
            Custom tools have free text in `input` instead of JSON in `arguments`; the call is run
            without it or is lost.
        """,
        example='if (item.type === "function_call") calls.push(item)',
        fix="Read `custom_tool_call` items and their `input`.",
        references=(
            "https://github.com/github/copilot-cli/issues/4327",
            "https://github.com/langchain-ai/langchainjs/issues/8854",
        ),
    ),
)
