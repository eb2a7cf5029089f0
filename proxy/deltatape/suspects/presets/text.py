"""Presets that look for calls in the text."""

from typing import ClassVar

from deltatape.suspects.choice import Family
from deltatape.suspects.client import Client, client_of


class FlushBeforeClosingTag:
    """It passes on the body of a call before its closing tag has come.

    ## What it does
    The parser holds back what may be a tag, and passes on the rest. Inside a call that is half a
    body; what is left of the closing tag follows it: "invalid character '>' after top-level value".

    ## Example
    ```
    <tool>{"tool_name":"read_file","arguments":{      | passed on as a call
    "path":"a.txt"}}                                  | ...
    </tool>
    ```

    ## Fix
    Inside a call pass on nothing until the whole closing tag is there.

    ## References
    - https://github.com/waybarrios/vllm-mlx/issues/55
    - https://github.com/lsdefine/GenericAgent/issues/804
    """

    name: ClassVar[str] = "flush-before-closing-tag"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("tags", "flush-early")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/waybarrios/vllm-mlx/issues/55"


class TagWithinOnePiece:
    r"""It looks for tags in each piece of text alone.

    ## What it does
    A tag, or a call, that goes over two pieces is never found and is shown to the user.

    ## Example
    ```
    const match = chunk.match(/<tool>(.*)<\/tool>/)
    ```

    ## Fix
    Search the text so far.

    ## References
    - https://github.com/raullenchai/Rapid-MLX/issues/581
    """

    name: ClassVar[str] = "tag-within-one-piece"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("tags", "per-chunk")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/raullenchai/Rapid-MLX/issues/581"


class RescansFullText:
    """It searches the whole text again with every piece.

    ## What it does
    Calls that were found before are found again, and run again.

    ## Example
    ```
    text += chunk
    for match in pattern.findall(text): run(match)
    ```

    ## Fix
    Remember where the last call ended.

    ## References
    - https://github.com/rynfar/meridian/issues/73
    """

    name: ClassVar[str] = "rescans-full-text"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("tags", "rescan")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/rynfar/meridian/issues/73"


class BracesCountedInStrings:
    """It counts braces in strings, too.

    ## What it does
    A brace in a string ends the call early, or never.

    ## Example
    ```
    depth += c == "{"; depth -= c == "}"
    ```

    ## Fix
    Let a JSON parser find the end.

    ## References
    - https://github.com/ollama/ollama/issues/16937
    - https://github.com/NVIDIA/TensorRT-LLM/issues/19228
    """

    name: ClassVar[str] = "braces-counted-in-strings"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("tags", "braces")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/ollama/ollama/issues/16937"


class FirstTextCallOnly:
    """It finds the first call of a text only.

    ## What it does
    A second call is not looked for, and is shown to the user.

    ## Example
    ```
    if "</tool_call>" in seen: return
    ```

    ## Fix
    Search on behind the closing tag.

    ## References
    - https://github.com/vllm-project/vllm/issues/31207
    """

    name: ClassVar[str] = "first-text-call-only"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("tags", "first-call")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/vllm-project/vllm/issues/31207"


class ReasoningScanned:
    """It looks for calls in the reasoning.

    ## What it does
    A model that thinks about a call has not made it.

    ## Example
    ```
    find_calls(delta.reasoning_content)
    ```

    ## Fix
    Search the text only.

    ## References
    - https://github.com/MoonshotAI/Kimi-K2/issues/89
    - https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1592
    """

    name: ClassVar[str] = "reasoning-scanned"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("tags", "reasoning")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/MoonshotAI/Kimi-K2/issues/89"
