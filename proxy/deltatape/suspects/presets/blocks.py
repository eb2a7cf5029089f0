"""Presets for streams of blocks: Anthropic's, Bedrock's, Cohere's."""

from typing import ClassVar

from deltatape.suspects.choice import Family
from deltatape.suspects.client import Client, client_of


class CurrentBlockOnly:
    """It appends every delta to the block that began last.

    ## What it does
    Gateways interleave blocks, or leave out where one begins; every delta has its index.

    ## Example
    ```
    case "content_block_delta": current.input += delta.partial_json
    ```

    ## Fix
    Key blocks by `index`.

    ## References
    - https://github.com/crmne/ruby_llm/issues/711
    - https://github.com/NousResearch/hermes-agent/issues/108209
    """

    name: ClassVar[str] = "current-block-only"
    clients: ClassVar[tuple[Client, ...]] = (
        client_of(("key", "current")),
        client_of(("key", "single")),
    )
    families: ClassVar[frozenset[Family]] = frozenset({Family.BLOCKS})
    source: ClassVar[str] = "https://github.com/crmne/ruby_llm/issues/711"


class StartInputUsed:
    """It takes the input of the event that starts a block.

    ## What it does
    There it is `{}`; the real one comes in deltas. Every call runs without arguments.

    ## Example
    ```
    if event.type == "content_block_start": run(event.content_block.input)
    ```

    ## Fix
    Append the `partial_json` of all deltas and parse it when the block stops.

    ## References
    - https://github.com/crewAIInc/crewAI/issues/6152
    - https://github.com/cubeplexai/cubeloop/issues/108
    """

    name: ClassVar[str] = "start-input-used"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("source", "added")),)
    families: ClassVar[frozenset[Family]] = frozenset({Family.BLOCKS})
    source: ClassVar[str] = "https://github.com/crewAIInc/crewAI/issues/6152"


class StartInputPrefixed:
    """It puts the input of the opening event in front of the deltas.

    ## What it does
    `{}` and then the real arguments, `{}{"a":1}`; or the same arguments twice.

    ## Example
    ```
    block.text = JSON.stringify(block.input)
    block.text += delta.partial_json
    ```

    ## Fix
    Begin with an empty buffer; use the opening event's input only if no delta comes.

    ## References
    - https://github.com/BerriAI/litellm/issues/4537
    - https://github.com/openai/openai-agents-js/issues/712
    """

    name: ClassVar[str] = "start-input-prefixed"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("source", "added+deltas")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/BerriAI/litellm/issues/4537"


class UsesCallsAtTheirEndOnly:
    """It uses a call only when an event ends it.

    ## What it does
    Gateways leave out `content_block_stop` or `response.output_item.done`; the call is never used.

    ## Example
    ```
    case "content_block_stop": emit(block)
    ```

    ## Fix
    Use what is left when the message ends normally.

    ## References
    - https://docs.anthropic.com/en/docs/build-with-claude/streaming
    - https://github.com/vercel/ai/issues/15879
    """

    name: ClassVar[str] = "uses-calls-at-their-end-only"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("emit", "at-close")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://docs.anthropic.com/en/docs/build-with-claude/streaming"
