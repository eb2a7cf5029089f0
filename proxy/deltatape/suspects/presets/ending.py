"""Presets that stop, or use calls, too early or never."""

from typing import ClassVar

from deltatape.suspects.choice import Family
from deltatape.suspects.client import Client, client_of


class FinishOnlyOnToolCalls:
    """It uses calls only if the finish reason is `tool_calls`.

    ## What it does
    Providers end answers with calls with `stop` as well: for a forced tool, by habit, or because a
    gateway says so. Then the calls are dropped and nothing happens.

    ## Example
    ```
    if finish_reason == "tool_calls": run(calls)
    ```

    ## Fix
    Run the calls that came, whatever the finish reason is.

    ## References
    - https://github.com/googleapis/python-genai/issues/2868
    - https://github.com/ollama/ollama/issues/7963
    - https://github.com/vllm-project/vllm/issues/9209
    """

    name: ClassVar[str] = "finish-only-on-tool-calls"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("emit", "on-tool-calls")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/googleapis/python-genai/issues/2868"


class LastFinishWins:
    """It uses calls only if the last finish reason is `tool_calls`.

    ## What it does
    A second finish reason follows, `stop`, and overwrites the first.

    ## Example
    ```
    finish = choice.finish_reason ?? finish      // tool_calls, then stop
    ```

    ## Fix
    Run the calls that came.

    ## References
    - https://github.com/RayBytes/ChatMock/issues/114
    """

    name: ClassVar[str] = "last-finish-wins"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("emit", "last-tool-calls")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/RayBytes/ChatMock/issues/114"


class WaitsForFinish:
    """It uses calls only once a finish reason has come.

    ## What it does
    Where the stream ends without one, the calls stay in their buffer, and nothing is said.

    ## Example
    ```
    if choice.finish_reason: yield from calls.values()
    ```

    ## Fix
    Look at the buffer when the stream ends, and report that it was cut.

    ## References
    - https://github.com/CommandCodeAI/command-code/issues/785
    - https://github.com/ltmoerdani/opencode-copilot-chat/issues/188
    """

    name: ClassVar[str] = "waits-for-finish"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("emit", "on-finish")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/CommandCodeAI/command-code/issues/785"


class FinishBeforeDeltas:
    """It looks at the finish reason before the deltas of the same event.

    ## What it does
    Servers may send the last piece, or the whole call, in the event that has the finish reason.

    ## Example
    ```
    if finish_reason: break
    for piece in delta["tool_calls"]: ...
    ```

    ## Fix
    Take the deltas of an event first.

    ## References
    - https://github.com/docker/docker-agent/issues/2992
    - https://github.com/ranxianglei/billion-context/issues/432
    """

    name: ClassVar[str] = "finish-before-deltas"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("stop", "finish-before")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/docker/docker-agent/issues/2992"


class AnyFinishEnds:
    """It stops at the first finish reason that is not null.

    ## What it does
    Some servers send `"finish_reason":""`, or `stop`, on every event.

    ## Example
    ```
    if choice["finish_reason"] is not None: break
    ```

    ## Fix
    Read on to `[DONE]`, and take an empty finish reason for none.

    ## References
    - https://github.com/adolfousier/opencrabs/issues/1499
    - https://github.com/BerriAI/litellm/issues/2195
    """

    name: ClassVar[str] = "any-finish-ends"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("stop", "finish")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/adolfousier/opencrabs/issues/1499"


class FiresWhenArgumentsParse:
    """It uses a call as soon as its arguments parse.

    ## What it does
    A prefix may parse: `{}` before the real arguments, a number. What follows is ignored. A call
    without arguments never fires.

    ## Example
    ```
    try: run(json.loads(call["arguments"]))
    except ValueError: pass
    ```

    ## Fix
    Wait for the end of the call.

    ## References
    - https://github.com/OpenRouterTeam/ai-sdk-provider/issues/489
    """

    name: ClassVar[str] = "fires-when-arguments-parse"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("emit", "when-parses")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/OpenRouterTeam/ai-sdk-provider/issues/489"


class ExecutesOnName:
    """It uses a call as soon as it has id and name.

    ## What it does
    The first piece has both, and no arguments yet.

    ## Example
    ```
    if (call.id && call.name) execute(call)
    ```

    ## Fix
    Wait for the end of the call.

    ## References
    - https://github.com/OpenRouterTeam/ai-sdk-provider/issues/489
    """

    name: ClassVar[str] = "executes-on-name"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("emit", "at-name")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/OpenRouterTeam/ai-sdk-provider/issues/489"


class ChoicesUnguarded:
    """It expects `choices[0].delta` in every event.

    ## What it does
    Events with usage, of a content filter, or with an error have no choices; a delta may be null.
    Reading on throws, and all calls are lost.

    ## Example
    ```
    delta = chunk["choices"][0]["delta"]         # IndexError
    ```

    ## Fix
    Skip events without choices or delta; look for `error`.

    ## References
    - https://github.com/awslabs/llmeter/issues/34
    - https://github.com/BerriAI/litellm/issues/32519
    - https://github.com/AbanteAI/archive-old-cli-mentat/issues/430
    """

    name: ClassVar[str] = "choices-unguarded"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("guard", "unguarded")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/awslabs/llmeter/issues/34"


class EofAsSuccess:
    """It takes the end of the connection for the end of the answer.

    ## What it does
    A stream that was cut ends without a finish reason. The call that is under construction is run,
    or fails to parse.

    ## Example
    ```
    for chunk in stream: ...
    run(calls)
    ```

    ## Fix
    Run nothing without the terminal event; report a broken stream and try again.

    ## References
    - https://github.com/openclaw/openclaw/issues/108989
    - https://github.com/BerriAI/litellm/issues/32159
    - https://github.com/langchain-ai/langchainjs/issues/11494
    """

    name: ClassVar[str] = "eof-as-success"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("ending", "ignored")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/openclaw/openclaw/issues/108989"


class TextOnlyFollowUp:
    """It reads the text of a follow-up stream only.

    ## What it does
    The stream after the tool results is handled by simpler code, which knows no calls. The model
    calls again, and the user sees an empty answer.

    ## Example
    ```
    for await (const chunk of followUp) text += chunk.choices[0].delta.content ?? ""
    ```

    ## Fix
    Use the same loop for every stream, until one has no calls.

    ## References
    - https://platform.openai.com/docs/guides/function-calling
    """

    name: ClassVar[str] = "text-only-follow-up"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("calls", "ignored")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://platform.openai.com/docs/guides/function-calling"
