"""Presets for Responses: which of the events about one item they believe."""

from typing import ClassVar

from deltatape.suspects.choice import Family
from deltatape.suspects.client import Client, client_of


class DeltasKeyedByCallId:
    """It builds calls from argument deltas under a call id that those do not have.

    ## What it does
    Argument deltas carry `item_id` and `output_index`, neither name nor call_id. The call has no
    name, a filter drops it, nothing is run and nothing is said.

    ## Example
    ```
    let call = calls.find((c) => c.id === event.call_id) ?? push({ id: event.call_id, name: "" })
    call.arguments += event.delta
    calls.filter((c) => c.id && c.name)
    ```

    ## Fix
    Take id, name and arguments from the item of `response.output_item.done`.

    ## References
    - https://platform.openai.com/docs/api-reference/responses-streaming
    - https://github.com/mcp-use/mcp-use/issues/2593
    """

    name: ClassVar[str] = "deltas-keyed-by-call-id"
    clients: ClassVar[tuple[Client, ...]] = (
        client_of(("key", "call-id"), ("incomplete", "dropped")),
        client_of(("key", "call-id")),
        client_of(("key", "delta-item-id")),
    )
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://platform.openai.com/docs/api-reference/responses-streaming"


class ArgumentsAtItemAdded:
    """It takes the arguments from `response.output_item.added`.

    ## What it does
    At that event the item has its name and call_id, and its arguments are still empty. Every call
    runs without arguments.

    ## Example
    ```
    if (event.type === "response.output_item.added") calls.push(event.item)
    ```

    ## Fix
    Use `response.output_item.done`, whose item is whole.

    ## References
    - https://platform.openai.com/docs/api-reference/responses-streaming
    """

    name: ClassVar[str] = "arguments-at-item-added"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("source", "added")),)
    families: ClassVar[frozenset[Family]] = frozenset({Family.ITEMS})
    source: ClassVar[str] = "https://platform.openai.com/docs/api-reference/responses-streaming"


class FinalOutputOnly:
    """It takes calls from `response.completed` only.

    ## What it does
    Some backends list nothing there, and a response that is incomplete or cut has no such event.

    ## Example
    ```
    if (event.type === "response.completed") calls = event.response.output
    ```

    ## Fix
    Collect the items of `response.output_item.done`; use the last event for what did not come
    before.

    ## References
    - https://github.com/router-for-me/CLIProxyAPI/issues/2626
    - https://github.com/open-webui/open-webui/issues/27800
    - https://github.com/mcowger/plexus/issues/644
    """

    name: ClassVar[str] = "final-output-only"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("source", "completed")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/router-for-me/CLIProxyAPI/issues/2626"


class DeltasOnly:
    """It knows argument deltas only.

    ## What it does
    Some backends send no deltas, or encrypted ones, and the arguments with the item that is done.

    ## Example
    ```
    if (event.type === "response.function_call_arguments.delta") call.arguments += event.delta
    ```

    ## Fix
    Let the item of `response.output_item.done` win over the deltas.

    ## References
    - https://github.com/lidge-jun/opencodex/issues/4652
    - https://github.com/looplj/axonhub/issues/2486
    - https://github.com/openclaw/openclaw/issues/90585
    """

    name: ClassVar[str] = "deltas-only"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("source", "deltas")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/lidge-jun/opencodex/issues/4652"


class ArgumentsDoneOnly:
    """It takes arguments from `response.function_call_arguments.done` only.

    ## What it does
    Some backends leave that event out.

    ## Example
    ```
    if (event.type === "response.function_call_arguments.done") run(event.arguments)
    ```

    ## Fix
    Use `response.output_item.done`.

    ## References
    - https://platform.openai.com/docs/api-reference/responses-streaming
    """

    name: ClassVar[str] = "arguments-done-only"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("source", "arguments-done")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://platform.openai.com/docs/api-reference/responses-streaming"


class ItemDoneOnly:
    """It takes calls from `response.output_item.done` only.

    ## What it does
    Some backends leave that event out and fill the last one.

    ## Example
    ```
    if (event.type === "response.output_item.done") calls.push(event.item)
    ```

    ## Fix
    Fall back to the output of `response.completed`.

    ## References
    - https://github.com/anomalyco/opencode/issues/44893
    - https://github.com/anomalyco/opencode/issues/46084
    """

    name: ClassVar[str] = "item-done-only"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("source", "item-done")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/anomalyco/opencode/issues/44893"


class CorrelatesByItemId:
    """It knows items by their id only.

    ## What it does
    Some backends give an item another id in every event, or none when it is done.

    ## Example
    ```
    items[event.item_id].arguments += event.delta
    ```

    ## Fix
    Use `output_index` as the key, and answer to `call_id`.

    ## References
    - https://github.com/BerriAI/litellm/issues/30072
    - https://github.com/vercel/ai/issues/18548
    - https://github.com/caozhiyuan/copilot-api/issues/72
    """

    name: ClassVar[str] = "correlates-by-item-id"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("key", "item-id")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/BerriAI/litellm/issues/30072"


class WrappedItemType:
    """It filters items by a type that the API does not have.

    ## What it does
    `function_tool_call` is what a wrapper calls it; on the wire it is `function_call`. The filter
    matches nothing.

    ## Example
    ```
    items.filter((item) => item.type === "function_tool_call")
    ```

    ## Fix
    Filter by `function_call`.

    ## References
    - https://platform.openai.com/docs/api-reference/responses-streaming
    """

    name: ClassVar[str] = "wrapped-item-type"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("kinds", "wrapped")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://platform.openai.com/docs/api-reference/responses-streaming"


class AnswersToItemId:
    """It answers to the item's id instead of its call_id.

    ## What it does
    Items have two ids. The result must name `call_id`; `id` is internal.

    ## Example
    ```
    outputs.push({ type: "function_call_output", call_id: item.id, output })
    ```

    ## Fix
    Use `item.call_id`.

    ## References
    - https://github.com/rbb-dev/Open-WebUI-OpenRouter-pipe/issues/54
    """

    name: ClassVar[str] = "answers-to-item-id"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("id", "item")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/rbb-dev/Open-WebUI-OpenRouter-pipe/issues/54"
