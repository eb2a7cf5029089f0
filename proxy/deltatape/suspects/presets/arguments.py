"""Presets that spoil arguments: which pieces they take, and how they parse."""

from typing import ClassVar

from deltatape.suspects.choice import Family
from deltatape.suspects.client import Client, client_of


class FirstArgumentsDropped:
    """It forgets the arguments of the piece that opens a call.

    ## What it does
    The branch that creates the call sets an empty string, the other one appends. Servers that send
    a call whole, or its first piece with the name, lose that.

    ## Example
    ```
    if index not in calls: calls[index] = {"name": name, "arguments": ""}
    else: calls[index]["arguments"] += arguments
    ```

    ## Fix
    Create the call if it is not there, then append in any case.

    ## References
    - https://platform.openai.com/docs/guides/function-calling
    - https://github.com/ollama/ollama/issues/7881
    """

    name: ClassVar[str] = "first-arguments-dropped"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("arguments", "drop-first")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://platform.openai.com/docs/guides/function-calling"


class ArgumentsOfFirstPieceOnly:
    """It keeps the arguments of the first piece.

    ## What it does
    The call is made of the piece that names it, usually with an empty string; the rest is dropped.

    ## Example
    ```
    if piece.function.name: calls.append(piece.function)
    ```

    ## Fix
    Append the arguments of every piece.

    ## References
    - https://platform.openai.com/docs/guides/function-calling
    """

    name: ClassVar[str] = "arguments-of-first-piece-only"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("arguments", "first-only")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://platform.openai.com/docs/guides/function-calling"


class LastPieceWins:
    """It keeps the arguments of the last piece.

    ## What it does
    Every piece overwrites the one before.

    ## Example
    ```
    call.arguments = piece.function.arguments
    ```

    ## Fix
    Append: `call.arguments += ...`.

    ## References
    - https://platform.openai.com/docs/guides/function-calling
    """

    name: ClassVar[str] = "last-piece-wins"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("arguments", "replace")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://platform.openai.com/docs/guides/function-calling"


class IndexAsArguments:
    """It passes on a number as the arguments: the index of an entry, or of the event.

    ## What it does
    Each entry becomes an event for the page at once: the name is null from the second on, and the
    arguments are a number.

    ## Example
    ```
    {"type": "tool_call", "name": null, "arguments": 10}
    ```

    ## Fix
    Collect name and arguments by index; pass on a call when the stream has ended, its arguments
    parsed.

    ## References
    - https://platform.openai.com/docs/guides/function-calling
    """

    name: ClassVar[str] = "index-as-arguments"
    clients: ClassVar[tuple[Client, ...]] = (
        client_of(("key", "none"), ("arguments", "event-number")),
        client_of(("key", "none"), ("arguments", "event-number"), ("entries", "with-arguments")),
        client_of(("key", "none"), ("arguments", "index")),
        client_of(("key", "none"), ("arguments", "index"), ("entries", "with-arguments")),
    )
    families: ClassVar[frozenset[Family]] = frozenset({Family.CHAT})
    source: ClassVar[str] = "https://platform.openai.com/docs/guides/function-calling"


class UndefinedAppended:
    """It appends "undefined" where a piece has no arguments.

    ## What it does
    In JavaScript `"" + undefined` is "undefined". Servers may leave `arguments` out.

    ## Example
    ```
    call.arguments += piece.function.arguments
    ```

    ## Fix
    Append `piece.function.arguments ?? ""`.

    ## References
    - https://github.com/MadSkittles/Router-Maestro/issues/162
    """

    name: ClassVar[str] = "undefined-appended"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("absent", "undefined")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/MadSkittles/Router-Maestro/issues/162"


class ObjectArgumentsAsText:
    """It makes "[object Object]" of arguments that are an object.

    ## What it does
    Some servers send the arguments as JSON instead of a string with JSON in it.

    ## Example
    ```
    call.arguments += piece.function.arguments      // an object
    ```

    ## Fix
    Serialise arguments that are no string.

    ## References
    - https://github.com/can1357/oh-my-pi/issues/1779
    - https://github.com/ggml-org/llama.cpp/issues/20198
    """

    name: ClassVar[str] = "object-arguments-as-text"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("value", "string")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/can1357/oh-my-pi/issues/1779"


class ObjectArgumentsRefused:
    """It throws at arguments that are an object.

    ## What it does
    Some servers send the arguments as JSON instead of a string with JSON in it; the stream is lost.

    ## Example
    ```
    call["arguments"] += piece["function"]["arguments"]   # can only concatenate str
    ```

    ## Fix
    Serialise arguments that are no string.

    ## References
    - https://github.com/BerriAI/litellm/issues/37792
    """

    name: ClassVar[str] = "object-arguments-refused"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("value", "raise")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/BerriAI/litellm/issues/37792"


class FragmentParsedAlone:
    """It parses each piece of the arguments alone.

    ## What it does
    A piece is no JSON, so that parsing fails; what fails is swallowed, and the tool runs with `{}`.

    ## Example
    ```
    try: call["args"].update(json.loads(piece["arguments"]))
    except ValueError: pass
    ```

    ## Fix
    Append all pieces, and parse once, at the end of the call.

    ## References
    - https://github.com/bojieli/ai-agent-book/issues/194
    """

    name: ClassVar[str] = "fragment-parsed-alone"
    clients: ClassVar[tuple[Client, ...]] = (
        client_of(("parse", "fragments")),
        client_of(("parse", "fragments-spread")),
    )
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/bojieli/ai-agent-book/issues/194"


class SwallowsBadJson:
    """It runs a call with {} when its arguments do not parse.

    ## What it does
    Arguments that were cut or spoilt are replaced, and the tool runs without them.

    ## Example
    ```
    try { args = JSON.parse(text) } catch { args = {} }
    ```

    ## Fix
    Tell the model that its arguments could not be read, and do not run the call.

    ## References
    - https://github.com/earendil-works/pi/issues/2981
    """

    name: ClassVar[str] = "swallows-bad-json"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("parse", "swallow")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/earendil-works/pi/issues/2981"


class DropsUnparsableCalls:
    """It silently drops calls whose arguments do not parse.

    ## What it does
    A call without arguments, or with arguments that were cut or spoilt, is never run, and nobody is
    told.

    ## Example
    ```
    try: calls.append((name, json.loads(arguments)))
    except ValueError: pass
    ```

    ## Fix
    Tell the model that its arguments could not be read; take empty ones for `{}`.

    ## References
    - https://github.com/letta-ai/letta-code/issues/387
    - https://github.com/MadSkittles/Router-Maestro/issues/162
    """

    name: ClassVar[str] = "drops-unparsable-calls"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("parse", "drop")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/letta-ai/letta-code/issues/387"


class RepairsCutArguments:
    """It closes what is open in arguments that were cut, and runs them.

    ## What it does
    A lenient parser makes valid JSON of a prefix: `{"a":` becomes `{}`, a path loses its end.

    ## Example
    ```
    args = parse_partial_json(text)
    ```

    ## Fix
    Use lenient parsers for display only.

    ## References
    - https://python.langchain.com/api_reference/core/utils/langchain_core.utils.json.parse_partial_json.html
    """

    name: ClassVar[str] = "repairs-cut-arguments"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("parse", "repair")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = (
        "https://python.langchain.com/api_reference/core/utils/langchain_core.utils.json.parse_partial_json.html"
    )


class DropsCutMember:
    """It drops the member in which arguments were cut, and runs the rest.

    ## What it does
    A partial parser keeps the members that are whole: the tool runs without the last one.

    ## Example
    ```
    input = from_json(text, partial_mode=True)
    ```

    ## Fix
    Use partial parsers for display only.

    ## References
    - https://github.com/anthropics/anthropic-sdk-python
    """

    name: ClassVar[str] = "drops-cut-member"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("parse", "repair-whole-members")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/anthropics/anthropic-sdk-python"


class EmptyArgumentsRefused:
    """It parses arguments without a byte.

    ## What it does
    A call of a tool without parameters often has no arguments at all. Parsing them fails:
    "Unexpected end of JSON input".

    ## Example
    ```
    const args = JSON.parse(call.arguments)      // ""
    ```

    ## Fix
    Take empty arguments for `{}` if the tool requires nothing.

    ## References
    - https://github.com/openai/openai-agents-js/issues/664
    - https://github.com/vercel/ai/issues/10747
    - https://github.com/Kilo-Org/cloud/issues/4753
    """

    name: ClassVar[str] = "empty-arguments-refused"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("empty", "parsed")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/openai/openai-agents-js/issues/664"
