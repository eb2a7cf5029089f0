"""`why --with`: what real SDKs make of a recorded response, in the versions that the user names."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.errors import UsageError
from deltatape.model.asked import RepeatedCall
from deltatape.model.exchange import Exchange
from deltatape.model.suspect import Made
from deltatape.sdks.install import SdkSpec, installed, known, parse_spec
from deltatape.sdks.runner import SdkStream, run_sdk


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeBy:
    """What an SDK makes of a response."""

    spec: str
    """As the user named it: `ai@6`."""
    versions: Mapping[str, str]
    """The exact ones: of the package itself, first, and of those that do a part of its work."""
    made: Made
    refused: tuple[RepeatedCall, ...]
    """Calls that it hands over marked as unusable; they are not in `made`."""
    finish: str | None
    """Why the model stopped, in the SDK's own word."""


def made_by(
    exchange: Exchange,
    specs: Sequence[str],
    *,
    tell: Callable[[str], None],
    environment: Mapping[str, str] = os.environ,
) -> tuple[MadeBy, ...]:
    """What each of `specs` makes of the response of `exchange`, in their order.

    Each runs in a process and an environment of its own, and gets the response from a server on
    loopback; the SDKs that are not installed yet are, with pip or npm.

    Args:
        exchange: a recorded one.
        specs: `openai==3.54.0`, `ai@6`.
        tell: is told in one line what takes long.
        environment: says where the cache is.

    Raises:
        UsageError: a name that is not known, or of an SDK that does not read the dialect.
        DeltatapeError: an SDK cannot be installed or started.
    """
    analysis = analyse(exchange)
    found = [parse_spec(spec) for spec in specs]
    for spec in found:
        _check(spec, analysis.reply.dialect)
    stream = SdkStream(
        exchange=exchange, dialect=analysis.reply.dialect, tools=tuple(_tools(analysis))
    )
    return tuple(_made_by(spec, stream, tell, environment) for spec in found)


def _check(spec: SdkSpec, dialect: str) -> None:
    if dialect in spec.package.dialects:
        return
    able = known(dialect)
    instead = (
        f"what reads {dialect}: {', '.join(able)}" if able else f"nothing known reads {dialect}"
    )
    raise UsageError(
        f"--with {spec.text!r}: reads {', '.join(spec.package.dialects)}; the response is"
        f" {dialect}; {instead}"
    )


def _tools(analysis: Analysis) -> dict[str, None]:
    """The names of the tools to offer: some SDKs refuse calls of others."""
    offered = [tool.name for tool in analysis.asked.tools]
    called = [call.name for call in analysis.reply.tool_calls if call.name]
    return dict.fromkeys((*offered, *called))


def _made_by(
    spec: SdkSpec,
    stream: SdkStream,
    tell: Callable[[str], None],
    environment: Mapping[str, str],
) -> MadeBy:
    run = asyncio.run(run_sdk(installed(spec, tell, environment), [stream]))
    (reply,) = run.replies
    made = Made(calls=reply.calls, errors=(reply.error,) if reply.error else (), text=reply.text)
    return MadeBy(
        spec=spec.text,
        versions=run.versions,
        made=made,
        refused=reply.refused,
        finish=reply.finish,
    )
