"""Presets that damage arguments, as they arrive or when they are sent back."""

from deltatape.suspects.client import ClientModel, Preset
from deltatape.suspects.mistakes import CHAT

ARGUMENTS = (
    Preset(
        name="first-arguments-dropped",
        clients=(ClientModel(arguments="drop-first"),),
        place=9,
        summary="It discards the arguments of the fragment that opens a call.",
        does="""
            The branch that creates the call sets an empty string, the other one appends. Servers
            that send a call whole, or its first fragment with the name, lose that.
        """,
        example="""
            if index not in calls: calls[index] = {"name": name, "arguments": ""}
            else: calls[index]["arguments"] += arguments
        """,
        fix="Create the call if it is not there, then append in any case.",
        references=(
            "https://platform.openai.com/docs/guides/function-calling",
            "https://github.com/ollama/ollama/issues/7881",
        ),
    ),
    Preset(
        name="arguments-of-first-piece-only",
        clients=(ClientModel(arguments="first-only"),),
        place=101,
        summary="It keeps only the arguments of the first fragment.",
        does="""
            The call is made of the fragment that names it, usually with an empty string; the rest
            is dropped.
        """,
        example="if fragment.function.name: calls.append(fragment.function)",
        fix="Append the arguments of every fragment.",
        references=("https://platform.openai.com/docs/guides/function-calling",),
    ),
    Preset(
        name="last-piece-wins",
        clients=(ClientModel(arguments="replace"),),
        summary="It keeps only the arguments of the last fragment.",
        does="Every fragment overwrites the one before.",
        example="call.arguments = fragment.function.arguments",
        fix="Append: `call.arguments += ...`.",
        references=("https://platform.openai.com/docs/guides/function-calling",),
    ),
    Preset(
        name="index-as-arguments",
        clients=(
            ClientModel(key="none", arguments="event-number"),
            ClientModel(key="none", arguments="event-number", entries="with-arguments"),
            ClientModel(key="none", arguments="index"),
            ClientModel(key="none", arguments="index", entries="with-arguments"),
        ),
        families=CHAT,
        summary="It passes on a number as the arguments: the index of an entry, or of the event.",
        does="""
            Each entry becomes an event for the page at once: the name is null from the second on,
            and the arguments are a number.
        """,
        example='{"type": "tool_call", "name": null, "arguments": 10}',
        fix="""
            Collect name and arguments by index; pass on a call when the stream has ended, its
            arguments parsed.
        """,
        references=("https://platform.openai.com/docs/guides/function-calling",),
    ),
    Preset(
        name="undefined-appended",
        clients=(ClientModel(absent="undefined"),),
        summary='It appends "undefined" where a fragment has no arguments.',
        does='In JavaScript `"" + undefined` is "undefined". Servers may leave `arguments` out.',
        example="call.arguments += fragment.function.arguments",
        fix='Append `fragment.function.arguments ?? ""`.',
        references=("https://github.com/MadSkittles/Router-Maestro/issues/162",),
    ),
    Preset(
        name="object-arguments-as-text",
        clients=(ClientModel(value="string"),),
        summary='It turns arguments that are an object into "[object Object]".',
        does="Some servers send the arguments as JSON instead of a string with JSON in it.",
        example="call.arguments += fragment.function.arguments      // an object",
        fix="Serialise arguments that are not a string.",
        references=(
            "https://github.com/can1357/oh-my-pi/issues/1779",
            "https://github.com/ggml-org/llama.cpp/issues/20198",
        ),
    ),
    Preset(
        name="object-arguments-refused",
        clients=(ClientModel(value="raise"),),
        summary="It throws if arguments are an object.",
        does="""
            Some servers send the arguments as JSON instead of a string with JSON in it; the stream
            is lost.
        """,
        example='call["arguments"] += fragment["function"]["arguments"]  # cannot concatenate str',
        fix="Serialise arguments that are not a string.",
        references=("https://github.com/BerriAI/litellm/issues/37792",),
    ),
    Preset(
        name="fragment-parsed-alone",
        clients=(ClientModel(parse="fragments"), ClientModel(parse="fragments-spread")),
        place=14,
        summary="It parses each fragment of the arguments by itself.",
        does="""
            A fragment is not JSON, so parsing fails; the error is swallowed, and the tool runs with
            `{}`.
        """,
        example="""
            try: call["args"].update(json.loads(fragment["arguments"]))
            except ValueError: pass
        """,
        fix="Append all fragments, and parse once, at the end of the call.",
        references=("https://github.com/bojieli/ai-agent-book/issues/194",),
    ),
    Preset(
        name="swallows-bad-json",
        clients=(ClientModel(parse="swallow"),),
        place=12,
        summary="It runs a call with {} when its arguments do not parse.",
        does="Arguments that were cut or damaged are replaced, and the tool runs without them.",
        example="try { args = JSON.parse(text) } catch { args = {} }",
        fix="Tell the model that its arguments could not be read, and do not run the call.",
        references=("https://github.com/earendil-works/pi/issues/2981",),
    ),
    Preset(
        name="drops-unparsable-calls",
        clients=(ClientModel(parse="drop"),),
        summary="It silently drops calls whose arguments do not parse.",
        does="""
            A call without arguments, or with arguments that were cut or damaged, is never run, and
            nobody is told.
        """,
        example="""
            try: calls.append((name, json.loads(arguments)))
            except ValueError: pass
        """,
        fix="Tell the model that its arguments could not be read; treat empty ones as `{}`.",
        references=(
            "https://github.com/letta-ai/letta-code/issues/387",
            "https://github.com/MadSkittles/Router-Maestro/issues/162",
        ),
    ),
    Preset(
        name="repairs-cut-arguments",
        clients=(ClientModel(parse="repair"),),
        summary="It closes open brackets and strings in truncated arguments, and runs the call.",
        does="""
            A lenient parser makes valid JSON of a prefix: `{"a":` becomes `{}`, a path loses its
            end.
        """,
        example="args = parse_partial_json(text)",
        fix="Use lenient parsers for display only.",
        references=(
            "https://python.langchain.com/api_reference/core/utils/langchain_core.utils.json.parse_partial_json.html",
        ),
    ),
    Preset(
        name="drops-cut-member",
        clients=(ClientModel(parse="repair-whole-members"),),
        summary="It drops the last, incomplete member of truncated arguments, and runs the call.",
        does="""
            A partial parser keeps the members that are whole: the tool runs without the last one.
        """,
        example="input = from_json(text, partial_mode=True)",
        fix="Use partial parsers for display only.",
        references=("https://github.com/anthropics/anthropic-sdk-python",),
    ),
    Preset(
        name="empty-arguments-refused",
        clients=(ClientModel(empty="parsed"),),
        summary="It parses empty arguments.",
        does="""
            A call of a tool without parameters often has no arguments at all. Parsing them fails:
            "Unexpected end of JSON input".
        """,
        example='const args = JSON.parse(call.arguments)      // ""',
        fix="Treat empty arguments as `{}` if the tool requires nothing.",
        references=(
            "https://github.com/openai/openai-agents-js/issues/664",
            "https://github.com/vercel/ai/issues/10747",
            "https://github.com/Kilo-Org/cloud/issues/4753",
        ),
    ),
)

REPEATED = (
    Preset(
        name="arguments-as-python-repr",
        clients=(ClientModel(written="python-repr"),),
        summary="It repeats arguments as Python prints a dict.",
        does="""
            The parsed arguments are written into the history with `str`: single quotes, `True`,
            `None`. The model reads that as its own words, strict servers refuse it.
        """,
        example='message["tool_calls"][0]["function"]["arguments"] = str(arguments)',
        fix="Repeat the text as it came, or write it with `json.dumps`.",
        references=("https://github.com/NousResearch/hermes-agent/issues/1087",),
    ),
    Preset(
        name="arguments-as-object-text",
        clients=(ClientModel(written="object-text"),),
        summary='It repeats "[object Object]" instead of arguments.',
        does="The parsed arguments are written into the history by a template or by `String`.",
        example="arguments: `${call.args}`",
        fix="Repeat the text as it came, or write it with `JSON.stringify`.",
        references=("https://github.com/can1357/oh-my-pi/issues/1779",),
    ),
    Preset(
        name="arguments-encoded-twice",
        clients=(ClientModel(written="twice"),),
        summary="It encodes arguments twice.",
        does="""
            The text of the arguments, JSON already, is written into the history with
            `JSON.stringify`. Strict servers refuse the next request.
        """,
        example="arguments: JSON.stringify(call.function.arguments)     // a string",
        fix="Repeat the text as it came.",
        references=(
            "https://github.com/JetBrains/koog/issues/2095",
            "https://github.com/openclaw/openclaw/issues/96717",
        ),
    ),
)
