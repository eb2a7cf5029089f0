"""Presets that spoil ids and names, or drop calls for what they are called."""

from typing import ClassVar

from deltatape.suspects.choice import Family
from deltatape.suspects.client import Client, client_of


class LateNameIgnored:
    """It looks for the name in the piece that opens a call only.

    ## What it does
    Some servers send the name after the first arguments, or after an empty one. The call stays
    without a name.

    ## Example
    ```
    calls[index] ??= { name: piece.function.name, arguments: "" }
    ```

    ## Fix
    Set the name whenever a piece has one and the call has none.

    ## References
    - https://github.com/vercel/ai/issues/15879
    - https://github.com/jjang-ai/vmlx/issues/244
    - https://github.com/OpenRouterTeam/ai-sdk-provider/issues/118
    """

    name: ClassVar[str] = "late-name-ignored"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("name", "at-opening")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/vercel/ai/issues/15879"


class NameOverwrittenByNull:
    """It overwrites the name with that of pieces which have none.

    ## What it does
    Later pieces have no name, or a null. The call ends up without one.

    ## Example
    ```
    call.name = piece.function.name        // undefined from the second piece on
    ```

    ## Fix
    Set the name only if the piece has one.

    ## References
    - https://github.com/sgl-project/sglang/issues/35542
    """

    name: ClassVar[str] = "name-overwritten-by-null"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("name", "null-too")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/sgl-project/sglang/issues/35542"


class NameOverwrittenByEmpty:
    """It overwrites the name with an empty one.

    ## What it does
    Some servers repeat `"name":""` on every piece: `??` takes it for a value.

    ## Example
    ```
    call.name = piece.function.name ?? call.name
    ```

    ## Fix
    Write `piece.function.name || call.name`.

    ## References
    - https://github.com/zed-industries/zed/issues/53605
    - https://github.com/jjang-ai/vmlx/issues/244
    """

    name: ClassVar[str] = "name-overwritten-by-empty"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("name", "empty-too")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/zed-industries/zed/issues/53605"


class IdOverwrittenByNull:
    """It overwrites the id with that of pieces which have none.

    ## What it does
    Later pieces have no id. The call ends up without one, its result belongs to nothing.

    ## Example
    ```
    call.id = piece.id                     // undefined from the second piece on
    ```

    ## Fix
    Set the id only if the piece has one.

    ## References
    - https://github.com/sgl-project/sglang/issues/35542
    """

    name: ClassVar[str] = "id-overwritten-by-null"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("id", "null-too")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/sgl-project/sglang/issues/35542"


class IdOverwrittenByEmpty:
    """It overwrites the id with an empty one.

    ## What it does
    Some servers repeat `"id":""` on every piece: `??` takes it for a value.

    ## Example
    ```
    call.id = piece.id ?? call.id
    ```

    ## Fix
    Write `piece.id || call.id`.

    ## References
    - https://github.com/JetBrains/koog/issues/1900
    - https://github.com/spring-projects/spring-ai/issues/6369
    - https://github.com/langchain-ai/langchain/issues/35414
    """

    name: ClassVar[str] = "id-overwritten-by-empty"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("id", "empty-too")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/JetBrains/koog/issues/1900"


class NameConcatenated:
    """It appends names, as it appends arguments.

    ## What it does
    Servers that repeat the name on every piece make `get_timeget_time` of it: an unknown tool.

    ## Example
    ```
    call["name"] += piece["function"].get("name") or ""
    ```

    ## Fix
    Set the name once.

    ## References
    - https://github.com/NousResearch/hermes-agent/issues/8259
    - https://github.com/bytedance/deer-flow/issues/654
    """

    name: ClassVar[str] = "name-concatenated"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("name", "concatenate")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/NousResearch/hermes-agent/issues/8259"


class IdConcatenated:
    """It appends ids, as it appends arguments.

    ## What it does
    Servers that repeat the id on every piece make `c1c1c1` of it; its result belongs to nothing.

    ## Example
    ```
    call["id"] += piece.get("id") or ""
    ```

    ## Fix
    Set the id once.

    ## References
    - https://github.com/JetBrains/koog/issues/2052
    - https://github.com/AstrBotDevs/AstrBot/issues/7735
    """

    name: ClassVar[str] = "id-concatenated"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("id", "concatenate")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/JetBrains/koog/issues/2052"


class IdDropped:
    """It forgets the ids, and makes up its own or none.

    ## What it does
    The results name ids that the provider never gave.

    ## Example
    ```
    calls.append({"name": name, "arguments": arguments})
    ```

    ## Fix
    Keep the id of the first piece and answer to it.

    ## References
    - https://platform.openai.com/docs/guides/function-calling
    """

    name: ClassVar[str] = "id-dropped"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("id", "drop")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://platform.openai.com/docs/guides/function-calling"


class DropsWithoutIdOrName:
    """It silently drops calls without id or name.

    ## What it does
    A filter against broken calls also drops those of servers that send no ids.

    ## Example
    ```
    calls.filter((call) => call.id && call.name)
    ```

    ## Fix
    Make up an id where the server sends none, and report what is dropped.

    ## References
    - https://github.com/BerriAI/litellm/issues/33223
    - https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/830
    """

    name: ClassVar[str] = "drops-without-id-or-name"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("incomplete", "dropped")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/BerriAI/litellm/issues/33223"


class EqualCallsDropped:
    """It drops calls that equal an earlier one.

    ## What it does
    Two calls with equal name and arguments are taken for one sent twice; a model may well want
    both.

    ## Example
    ```
    const unique = new Map(calls.map((call) => [call.name + call.arguments, call]))
    ```

    ## Fix
    Drop a call only if its id repeats.

    ## References
    - https://github.com/allenhutchison/obsidian-gemini/issues/230
    """

    name: ClassVar[str] = "equal-calls-dropped"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("repeats", "dropped")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/allenhutchison/obsidian-gemini/issues/230"


class LegacyFunctionCallIgnored:
    """It does not read `function_call`.

    ## What it does
    Older servers stream one call per answer as `delta.function_call`, without index and id.

    ## Example
    ```
    delta.get("tool_calls")                # and nothing else
    ```

    ## Fix
    Read `delta.function_call` as the one call of the answer.

    ## References
    - https://github.com/can1357/oh-my-pi/issues/1692
    """

    name: ClassVar[str] = "legacy-function-call-ignored"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("kinds", "no-legacy")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/can1357/oh-my-pi/issues/1692"


class CustomToolIgnored:
    """It does not read the input of custom tools.

    ## What it does
    Custom tools have free text in `input` instead of JSON in `arguments`; the call is run without
    it or is lost.

    ## Example
    ```
    if (item.type === "function_call") calls.push(item)
    ```

    ## Fix
    Read `custom_tool_call` items and their `input`.

    ## References
    - https://github.com/github/copilot-cli/issues/4327
    - https://github.com/langchain-ai/langchainjs/issues/8854
    """

    name: ClassVar[str] = "custom-tool-ignored"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("kinds", "no-custom")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/github/copilot-cli/issues/4327"
