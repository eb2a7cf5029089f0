"""Presets that read bytes and lines otherwise than the standard says."""

from typing import ClassVar

from deltatape.suspects.choice import Family
from deltatape.suspects.client import Client, client_of


class SplitOnNetworkRead:
    r"""It takes each network read for whole lines.

    ## What it does
    A read ends anywhere, also inside a line: half a line is no JSON, or does not begin with `data:
    `.

    ## Example
    ```
    for await (const chunk of body)
      for (const line of chunk.split("\n")) if (line.startsWith("data: ")) JSON.parse(line.slice(6))
    ```

    ## Fix
    Keep what follows the last line end, and put it in front of the next read.

    ## References
    - https://github.com/clidey/whodb/issues/972
    - https://github.com/ai-forever/gigachat-js/issues/14
    - https://github.com/spiceai/spiceai/issues/12588
    """

    name: ClassVar[str] = "split-on-network-read"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("framing", "reads")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/clidey/whodb/issues/972"


class OneEventPerRead:
    r"""It takes one event from each network read.

    ## What it does
    A read often brings several events; all but the first are lost. It works on a fast network and
    fails on a slow one, or the other way round.

    ## Example
    ```
    const data = JSON.parse(chunk.replace("data: ", "").split("\n")[0])
    ```

    ## Fix
    Loop over the events of a read.

    ## References
    - https://html.spec.whatwg.org/multipage/server-sent-events.html
    - https://github.com/clidey/whodb/issues/972
    """

    name: ClassVar[str] = "one-event-per-read"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("framing", "one-per-read")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://html.spec.whatwg.org/multipage/server-sent-events.html"


class DecodePerRead:
    """It decodes each network read alone.

    ## What it does
    A character of several bytes may be cut: it becomes U+FFFD twice, or decoding throws, or it is
    missing where errors are ignored.

    ## Example
    ```
    text += chunk.decode()
    ```

    ## Fix
    Use an incremental decoder: `TextDecoder` with `stream: true`, `codecs.getincrementaldecoder`.

    ## References
    - https://github.com/ollama/ollama-js/issues/255
    - https://github.com/api7/aisix/issues/111
    - https://github.com/katanemo/plano/issues/980
    """

    name: ClassVar[str] = "decode-per-read"
    clients: ClassVar[tuple[Client, ...]] = (
        client_of(("decode", "reads")),
        client_of(("decode", "reads-ignore")),
    )
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/ollama/ollama-js/issues/255"


class DataWithSpaceOnly:
    """It knows `data: ` with a space only.

    ## What it does
    The space is optional in the standard; lines without it are ignored.

    ## Example
    ```
    if line.startswith("data: "): ...
    ```

    ## Fix
    Strip `data:`, then one space if there is one.

    ## References
    - https://html.spec.whatwg.org/multipage/server-sent-events.html
    """

    name: ClassVar[str] = "data-with-space-only"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("framing", "space")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://html.spec.whatwg.org/multipage/server-sent-events.html"


class BlankLinesWithoutCr:
    r"""It splits events at two LFs only.

    ## What it does
    Servers may end lines with CRLF: no event is ever found.

    ## Example
    ```
    buffer.split("\n\n")
    ```

    ## Fix
    End lines at CRLF, LF or CR.

    ## References
    - https://html.spec.whatwg.org/multipage/server-sent-events.html
    """

    name: ClassVar[str] = "blank-lines-without-cr"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("framing", "blank-lines")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://html.spec.whatwg.org/multipage/server-sent-events.html"


class EveryLineIsJson:
    """It parses every line as JSON.

    ## What it does
    Comments keep connections alive, event lines name the event: neither is JSON.

    ## Example
    ```
    json.loads(line.removeprefix("data: "))      # ": OPENROUTER PROCESSING"
    ```

    ## Fix
    Parse data lines only.

    ## References
    - https://github.com/mnfst/llm-gateway/issues/2053
    - https://github.com/tmc/langchaingo/issues/1350
    - https://github.com/pfrankov/obsidian-local-gpt/issues/22
    """

    name: ClassVar[str] = "every-line-is-json"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("framing", "every-line")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/mnfst/llm-gateway/issues/2053"
