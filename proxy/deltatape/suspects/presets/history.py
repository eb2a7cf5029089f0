"""Presets that read a call well and repeat it wrongly."""

from typing import ClassVar

from deltatape.suspects.choice import Family
from deltatape.suspects.client import Client, client_of


class ArgumentsAsPythonRepr:
    """It repeats arguments as Python prints a dict.

    ## What it does
    The parsed arguments are written into the history with `str`: single quotes, `True`, `None`. The
    model reads that as its own words, strict servers refuse it.

    ## Example
    ```
    message["tool_calls"][0]["function"]["arguments"] = str(arguments)
    ```

    ## Fix
    Repeat the text as it came, or write it with `json.dumps`.

    ## References
    - https://github.com/NousResearch/hermes-agent/issues/1087
    """

    name: ClassVar[str] = "arguments-as-python-repr"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("written", "python-repr")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/NousResearch/hermes-agent/issues/1087"


class ArgumentsAsObjectText:
    """It repeats "[object Object]" instead of arguments.

    ## What it does
    The parsed arguments are written into the history by a template or by `String`.

    ## Example
    ```
    arguments: `${call.args}`
    ```

    ## Fix
    Repeat the text as it came, or write it with `JSON.stringify`.

    ## References
    - https://github.com/can1357/oh-my-pi/issues/1779
    """

    name: ClassVar[str] = "arguments-as-object-text"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("written", "object-text")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/can1357/oh-my-pi/issues/1779"


class ArgumentsEncodedTwice:
    """It encodes arguments twice.

    ## What it does
    The text of the arguments, JSON already, is written into the history with `JSON.stringify`.
    Strict servers refuse the next request.

    ## Example
    ```
    arguments: JSON.stringify(call.function.arguments)     // a string
    ```

    ## Fix
    Repeat the text as it came.

    ## References
    - https://github.com/JetBrains/koog/issues/2095
    - https://github.com/openclaw/openclaw/issues/96717
    """

    name: ClassVar[str] = "arguments-encoded-twice"
    clients: ClassVar[tuple[Client, ...]] = (client_of(("written", "twice")),)
    families: ClassVar[frozenset[Family]] = frozenset(Family)
    source: ClassVar[str] = "https://github.com/JetBrains/koog/issues/2095"
