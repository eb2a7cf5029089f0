"""Presets for dialects whose calls come in one piece: Gemini, Ollama."""

from typing import ClassVar

from deltatape.suspects.choice import Family
from deltatape.suspects.client import Client, client_of


class CallsOverwritten:
    """It assigns the list of calls with every event that has one.

    ## What it does
    Parallel calls come in several events; only the last event's are left.

    ## Example
    ```
    if message.tool_calls: calls = message.tool_calls
    ```

    ## Fix
    Append to the list.

    ## References
    - https://github.com/ollama/ollama/issues/11633
    - https://ai.google.dev/gemini-api/docs/function-calling
    """

    name: ClassVar[str] = "calls-overwritten"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("whole", "overwrite")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/ollama/ollama/issues/11633"


class NamelessPartsIgnored:
    """It drops parts without a name.

    ## What it does
    Streamed arguments come in parts without a name, as `partialArgs`. The call runs without
    arguments.

    ## Example
    ```
    if part.function_call and part.function_call.name: ...
    ```

    ## Fix
    Give such parts to the call that is open.

    ## References
    - https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling
    """

    name: ClassVar[str] = "nameless-parts-ignored"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("whole", "nameless-dropped")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = (
        "https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling"
    )


class StopsAtEmptyContent:
    """It stops at the first line without text.

    ## What it does
    Lines with calls have no text, the last line has none either.

    ## Example
    ```
    if not line["message"]["content"]: break
    ```

    ## Fix
    Read on to `"done": true`.

    ## References
    - https://github.com/ollama/ollama/issues/7881
    """

    name: ClassVar[str] = "stops-at-empty-content"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("stop", "blank")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/ollama/ollama/issues/7881"
