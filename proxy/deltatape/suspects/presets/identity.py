"""Presets that mix up calls: by what they tell them apart."""

from typing import ClassVar

from deltatape.suspects.choice import Family
from deltatape.suspects.client import Client, client_of


class SingleCurrentCall:
    """It keeps one current call; the next id replaces it.

    ## What it does
    One variable holds the call under construction. A piece with an id begins it anew, other pieces
    are appended. Interleaved pieces end up in the wrong call; where a server repeats the id on
    every piece, every piece becomes a call. Some put the call before into a list, others lose it.

    ## Example
    ```
    if (!current || piece.id) current = start(piece)
    else current.arguments += piece.function.arguments
    ```

    ## Fix
    Keep a map from `index` to call, append each piece to the call of its index, and use all of them
    when the stream has ended.

    ## References
    - https://platform.openai.com/docs/guides/function-calling
    - https://github.com/endolith/open-interpreter/issues/315
    - https://github.com/langchain4j/langchain4j/issues/4921
    - https://github.com/crmne/ruby_llm/issues/711
    """

    name: ClassVar[str] = "single-current-call"
    clients: ClassVar[tuple[Client, ...]] = (
        client_of(("key", "current")),
        client_of(("key", "single")),
        client_of(("key", "current"), ("emit", "on-tool-calls")),
        client_of(("key", "single"), ("emit", "on-tool-calls")),
        client_of(("key", "current"), ("name", "at-opening")),
        client_of(("key", "single"), ("name", "at-opening")),
        client_of(("key", "current"), ("name", "at-opening"), ("emit", "on-finish")),
    )
    families: ClassVar[frozenset[Family]] = frozenset({Family.CHAT, Family.ITEMS})
    source: ClassVar[str] = "https://platform.openai.com/docs/guides/function-calling"


class EachEventIsACall:
    """It takes every event for a whole call.

    ## What it does
    Each delta is passed on, or run, as it comes: the first has a name and no arguments, the others
    arguments and no name. Where a guard drops what is not whole, nothing is left of a call that
    comes in pieces.

    ## Example
    ```
    for piece in delta["tool_calls"]:
        run(piece["function"].get("name"), piece["function"].get("arguments"))
    ```

    ## Fix
    Append the pieces of one `index` to one call, and run it after the end of the stream.

    ## References
    - https://platform.openai.com/docs/guides/function-calling
    - https://github.com/ollama/ollama/issues/7881
    """

    name: ClassVar[str] = "each-event-is-a-call"
    clients: ClassVar[tuple[Client, ...]] = (
        client_of(("key", "none")),
        client_of(("key", "none"), ("entries", "with-arguments")),
        client_of(("key", "none"), ("incomplete", "dropped")),
        client_of(("key", "none"), ("parse", "drop")),
        client_of(("key", "none"), ("incomplete", "dropped"), ("parse", "drop")),
    )
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://platform.openai.com/docs/guides/function-calling"


class IndexIgnored:
    """It has one buffer for all calls.

    ## What it does
    Name and id are those of the last call, the arguments those of all calls, one behind the other.

    ## Example
    ```
    for piece in delta["tool_calls"]:
        call["arguments"] += piece["function"]["arguments"]
    ```

    ## Fix
    Keep one buffer per `index`.

    ## References
    - https://platform.openai.com/docs/guides/function-calling
    - https://github.com/BerriAI/litellm/issues/33678
    """

    name: ClassVar[str] = "index-ignored"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("key", "one")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://platform.openai.com/docs/guides/function-calling"


class StrictIndex:
    """It cannot do without an index.

    ## What it does
    Some servers leave out `index`, or send null. Looking it up throws, and the stream is lost.

    ## Example
    ```
    calls[piece["index"]]["arguments"] += piece["function"]["arguments"]    # KeyError: 'index'
    ```

    ## Fix
    Take a missing index for the call before; for a new one if the piece has another id or a name.

    ## References
    - https://github.com/ollama/ollama/issues/7881
    - https://github.com/EricLBuehler/mistral.rs/issues/1507
    - https://github.com/openai/openai-python/issues/3246
    """

    name: ClassVar[str] = "strict-index"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("key", "strict")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/ollama/ollama/issues/7881"


class IndexAsListPosition:
    """It uses the index as a position in its list of calls.

    ## What it does
    Gateways count a text block as index 0, so that the only call has index 1: there is nothing at
    that position yet.

    ## Example
    ```
    calls[piece.index].function.arguments += ...    // undefined at 1
    ```

    ## Fix
    Use a map from index to call.

    ## References
    - https://github.com/BerriAI/litellm/issues/5231
    - https://github.com/aws-samples/bedrock-access-gateway/issues/134
    """

    name: ClassVar[str] = "index-as-list-position"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("key", "list")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/BerriAI/litellm/issues/5231"


class KeyedById:
    """It files pieces under their id, which only the first piece has.

    ## What it does
    The first piece makes a call without arguments; all others go to a second one, without id and
    name, or nowhere.

    ## Example
    ```
    calls[piece.get("id")]["arguments"] += piece["function"]["arguments"]
    ```

    ## Fix
    Key by `index`; take the id from the first piece that has one.

    ## References
    - https://platform.openai.com/docs/guides/function-calling
    """

    name: ClassVar[str] = "keyed-by-id"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("key", "id")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://platform.openai.com/docs/guides/function-calling"


class PositionAsKey:
    """It takes the place in an event for the number of the call.

    ## What it does
    Each event's list begins at 0, whatever calls it is about. Calls that come one per event
    overwrite each other or are glued together.

    ## Example
    ```
    delta.tool_calls.forEach((piece, i) => { calls[i] = merge(calls[i], piece) })
    ```

    ## Fix
    Use the index that the piece carries; where calls come whole, append them to a list.

    ## References
    - https://github.com/su-kaka/gcli2api/issues/406
    - https://github.com/omnigent-ai/omnigent/issues/28
    """

    name: ClassVar[str] = "position-as-key"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("key", "position")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/su-kaka/gcli2api/issues/406"


class KeyedByName:
    """It files calls under the function's name.

    ## What it does
    Two calls of one function become one. In a stream of pieces only the first has a name.

    ## Example
    ```
    calls[part["functionCall"]["name"]] = part["functionCall"]["args"]
    ```

    ## Fix
    Keep calls in a list, or key by index.

    ## References
    - https://github.com/NousResearch/hermes-agent/issues/11863
    """

    name: ClassVar[str] = "keyed-by-name"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("key", "name")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/NousResearch/hermes-agent/issues/11863"


class FirstEntryOnly:
    """It reads only the first entry of an event.

    ## What it does
    An event may bring several entries in `tool_calls`, or several parts; all but the first are
    lost.

    ## Example
    ```
    const piece = delta.tool_calls[0]
    ```

    ## Fix
    Loop over the entries.

    ## References
    - https://github.com/langchain4j/langchain4j/issues/4921
    - https://github.com/endolith/open-interpreter/issues/315
    - https://github.com/BerriAI/litellm/issues/27638
    """

    name: ClassVar[str] = "first-entry-only"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("entries", "first")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/langchain4j/langchain4j/issues/4921"
