"""The server of the page: access control, and the answers.

The answers contain prompts and replies, so every request must prove two things. First, that it
comes from the user: by a token that only the user has, as a cookie or a bearer. Second, that no
other page made the browser send it: by `Host`, against DNS rebinding, and by `Sec-Fetch-Site`,
since a page on another port of this machine is same-site, so that the browser sends the cookie.
Requests change nothing: only GET is answered.

An attacker can control what a model writes, so answers are untrusted: documents are JSON, raw
bytes have a type that no browser renders, and the policy of the page allows no other script.
"""

import asyncio
import hmac
import json
import os
import re
import secrets
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TypedDict, TypeVar, cast

from aiohttp import web
from multidict import MultiMapping

from deltatape.clock import SystemClock, parse_rfc3339
from deltatape.errors import UsageError
from deltatape.exporters.copies import COPIES
from deltatape.http1.access import check_origin
from deltatape.http1.listener import Address, bracketed
from deltatape.inspector.index import (
    MAX_ROWS,
    ORDERS,
    Filter,
    IndexReader,
    Row,
    filtered,
    is_current,
)
from deltatape.inspector.processes import DocumentError, DocumentProcesses, IndexProcess
from deltatape.live.messages import Begin
from deltatape.model.finding import Severity
from deltatape.render.exchange_rows import trends_json
from deltatape.store.rule_set import rule_set

T = TypeVar("T")

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'"
    " data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Server": "deltatape",
    "X-Content-Type-Options": "nosniff",
}
_TYPES = {".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".txt": "text/plain"}
_PAGE = "index.html"
COOKIE = "deltatape"
_AT_MOST = 100
"""Rows of an answer that says no limit."""
_FULL = 200
_MAX_LISTENERS = 32
"""The most pages that follow changes."""
_READY_S = 60.0
"""How long a page waits for the first look at the tapes."""
_ALIVE_S = 15.0
"""The interval of keep-alives without news, which show when a page is gone."""
_FAREWELL_S = 0.2
"""How long answers may continue when the server stops: those to followers never end."""
_MAX_TEXT = 200
_MAX_VALUES = 50
"""How much of a filter counts."""
_SIDES = ("request", "response")
_SAME_ORIGIN = ("same-origin", "none")


class Refused(Exception):  # noqa: N818 - an answer, no error of ours
    """A request is refused, with a status and a message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class News(TypedDict):
    """A report of the indexing process."""

    revision: int
    indexed: Mapping[str, object]
    running: Sequence[Row]
    """Rows of the exchanges in progress."""


class Live:
    """The last report of the indexing process, for pages that follow it."""

    def __init__(self) -> None:
        self.news: News = {
            "revision": 0,
            "indexed": {"done": 0, "of": 0, "bytes": {"done": 0, "of": 0}},
            "running": [],
        }
        self._changed = asyncio.Event()

    def told(self, news: News) -> None:
        """Take what is new."""
        self.news = news
        self._changed.set()
        self._changed = asyncio.Event()

    async def change(self) -> None:
        """Wait until something is new, from now on."""
        await self._changed.wait()


class Inspector:
    """The server; `start` it, and `stop` it.

    Args:
        index: the file of the index, which may not exist yet.
        begin: what to show, for the processes: see `indexing` and `documents`.
        token: what requests have to know; made up by default.
    """

    def __init__(self, index: Path, begin: Mapping[str, object], token: str | None = None) -> None:
        self._index = index
        self._token = token or secrets.token_urlsafe(32)
        self._launch = ""
        self._cookie = COOKIE
        self._live = Live()
        self._indexing = IndexProcess({**begin, "index": str(index)}, self._told)
        self._documents = DocumentProcesses(begin)
        settings = begin["settings"]
        assert isinstance(settings, Mapping)
        self._rules = Begin(settings=settings).rules()
        self._reader: IndexReader | None = None
        self._inode = 0
        """The inode of the file that `_reader` reads."""
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="index")
        self._ready = asyncio.Event()
        self._runner: web.ServerRunner | None = None
        self._listeners = 0
        self._host = ""
        self._files = _static_files()
        self._paths: Mapping[str, Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]] = {
            "/api/tapes": self._tapes,
            "/api/exchanges": self._exchanges,
            "/api/thread": self._thread,
            "/api/trends": self._trends,
            "/api/show": partial(self._document, "show"),
            "/api/why": partial(self._document, "why"),
            "/api/steps": partial(self._document, "steps"),
            "/api/diff": self._diff,
            "/api/raw": self._raw,
            "/api/copy": self._copy,
            "/api/live": self._follow,
        }

    async def start(self, address: Address) -> str:
        """Listen on loopback and return the URL; a port 0 takes any free one.

        Raises:
            UsageError: the address is not available.
        """
        self._host = address.host
        # What a page that is gone has asked for is not made.
        server = web.Server(self._answer, handler_cancellation=True)
        self._runner = web.ServerRunner(server, access_log=None, shutdown_timeout=_FAREWELL_S)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, address.host, address.port).start()
        except OSError as error:
            await self.stop()
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise UsageError(
                f"--listen {address}: {reason}; choose another port (0 takes any free one)"
            ) from None
        host, port = self._runner.addresses[0][:2]
        # Cookies know no ports: one of another `deltatape open` must not replace this one.
        self._cookie = f"{COOKIE}-{port}"
        if await asyncio.to_thread(is_current, self._index, rule_set(self._rules)):
            self._ready.set()  # what was known is shown until there is more
        self._indexing.start()
        self._documents.start()
        return f"http://{bracketed(host)}:{port}"

    def link(self, url: str) -> str:
        """Return what opens the page: a URL for the user's eyes."""
        return f"{url}/?token={self._token}"

    def launch_link(self, url: str) -> str:
        """Return the same for a command line, which other users can read: it opens once."""
        self._launch = secrets.token_urlsafe(32)
        return f"{url}/?token={self._launch}"

    async def stop(self) -> None:
        """Stop listening, and end the processes; harmless without a start, and twice."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
        await self._indexing.stop()
        await self._documents.stop()
        self._readers.shutdown()
        self._close_reader()

    def _told(self, news: Mapping[str, object]) -> None:
        self._live.told(cast("News", news))  # its own process wrote it
        self._ready.set()

    # Who may ask.

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            answer = await self._served(request)
        except Refused as refused:
            if request.path == "/":  # read by a person
                answer = web.Response(status=refused.status, text=f"{refused.message}\n")
            else:
                answer = _json({"version": 1, "error": refused.message}, refused.status)
            if refused.status == web.HTTPMethodNotAllowed.status_code:
                answer.headers["Allow"] = "GET"
        if not answer.prepared:
            answer.headers.update({**_HEADERS, **answer.headers})
        return answer

    async def _served(self, request: web.BaseRequest) -> web.StreamResponse:
        self._check_sender(request)
        if request.method != "GET":
            raise Refused(405, f"{request.method}: only GET is answered; nothing can be changed")
        if request.path == "/" and "token" in request.query:
            return self._enter(request.query.getall("token"))
        if not self._is_known(request):
            raise Refused(
                401,
                "the token is missing: open the URL that deltatape open printed, or start it again",
            )
        file = self._files.get(_PAGE if request.path == "/" else request.path)
        if file is not None:
            kind, data = file
            return web.Response(body=data, content_type=kind, charset="utf-8")
        serve = self._paths.get(request.path)
        if serve is None:
            raise Refused(404, f"no {request.path[:80]}")
        return await serve(request)

    def _check_sender(self, request: web.BaseRequest) -> None:
        """Refuse what another page may have sent.

        Raises:
            Refused: another page may have.
        """
        fields = request.headers
        hosts = fields.getall("Host", [])
        if len(hosts) != 1:
            raise Refused(403, "the request has to name one host")
        if foreign := check_origin(request.raw_headers):
            raise Refused(403, foreign.message)
        sites = fields.getall("Sec-Fetch-Site", [])
        if any(site not in _SAME_ORIGIN for site in sites):
            raise Refused(403, "another page must not ask here")
        own = f"http://{hosts[0]}".lower()
        if any(origin.lower() != own for origin in fields.getall("Origin", [])):
            raise Refused(403, "another page must not ask here")

    def _enter(self, tokens: list[str]) -> web.Response:
        """Give the cookie for a token, and lead to the page without it: URLs are kept and shown."""
        launch, known = self._launch, False
        for token in tokens:
            known |= _equal(token, self._token)
            if launch and _equal(token, launch):
                known, self._launch = True, ""
        if not known:
            raise Refused(
                401,
                "the token is wrong or was used before: open the URL that deltatape open printed",
            )
        answer = web.Response(status=303, headers={"Location": "/"})
        answer.set_cookie(self._cookie, self._token, httponly=True, samesite="Strict", path="/")
        return answer

    def _is_known(self, request: web.BaseRequest) -> bool:
        scheme, _, bearer = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _equal(bearer.strip(), self._token):
            return True
        cookie = request.cookies.get(self._cookie)
        return cookie is not None and _equal(cookie, self._token)

    # What the index answers.

    async def _ask(self, question: Callable[[IndexReader], T]) -> T:
        """Query the index, in its thread.

        Raises:
            Refused: there is none yet, or it is being made anew.
        """
        try:
            async with asyncio.timeout(_READY_S):
                await self._ready.wait()
            ask = partial(self._asked, question)
            return await asyncio.get_running_loop().run_in_executor(self._readers, ask)
        except TimeoutError:
            raise Refused(503, "the list of exchanges is not there yet; try again") from None
        except (OSError, sqlite3.Error) as error:
            raise Refused(503, f"the list of exchanges cannot be read ({error})") from None

    def _asked(self, question: Callable[[IndexReader], T]) -> T:
        inode = self._index.stat().st_ino
        if self._reader is None or self._inode != inode:  # it was damaged, and made anew
            self._close_reader()
            self._reader, self._inode = IndexReader(self._index), inode
        return question(self._reader)

    def _close_reader(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    async def _tapes(self, _: web.BaseRequest) -> web.Response:
        return _json_text(await self._ask(tapes_document))

    async def _exchanges(self, request: web.BaseRequest) -> web.Response:
        query = request.query
        order = query.get("order") or "-at"
        if order.removeprefix("-") not in ORDERS:
            raise Refused(
                400, f"order: one of {', '.join(ORDERS)}, after a - for the largest first"
            )
        only = filter_of(query)
        offset = _number(query, "offset", 0)
        limit = min(_number(query, "limit", _AT_MOST), MAX_ROWS)
        page = await self._ask(lambda index: index.page(only, order, offset=offset, limit=limit))
        head = {
            "version": 1,
            "total": page.total,
            "all": page.all,
            "indexed": self._live.news["indexed"],
            "revision": page.revision,
            "facets": page.facets,
        }
        # Rows are JSON already.
        return _json_text(f'{json.dumps(head)[:-1]},"rows":[{",".join(page.rows)}]}}')

    async def _thread(self, request: web.BaseRequest) -> web.Response:
        tape, number = _place(request.query)
        rows = await self._ask(lambda index: index.thread(tape, number))
        if rows is None:  # of which conversation it is, is known when it has ended
            rows = [
                json.dumps(row)
                for row in self._live.news["running"]
                if row["tape"] == tape and row["exchange"] == number
            ]
        if not rows:
            raise Refused(404, f"{tape}#{number}: no such exchange in the list")
        return _json_text(f'{{"version":1,"rows":[{",".join(rows)}]}}')

    async def _trends(self, request: web.BaseRequest) -> web.Response:
        only = filter_of(request.query)
        return _json_text(await self._ask(lambda index: trends_json(index.trends(only))))

    # What other processes answer.

    async def _path(self, tape: str) -> str:
        """Return the path of a tape of the list; no other one is ever opened."""
        path = await self._ask(lambda index: index.path_of(tape))
        if path is None:
            raise Refused(404, f"{tape[:_FULL]}: no such tape in the list")
        return path

    async def _made(self, request: web.BaseRequest, what: str, **more: object) -> web.Response:
        tape, number = _place(request.query)
        question = {"what": what, "tape": tape, "path": await self._path(tape), "exchange": number}
        try:
            document = await self._documents.make({**question, **more})
        except DocumentError as error:
            raise Refused(503, f"{tape}#{number}: {error}") from None
        return web.Response(status=document.status, headers=document.fields, body=document.body)

    async def _document(self, what: str, request: web.BaseRequest) -> web.Response:
        return await self._made(request, what, full=request.query.get("full") == "1")

    async def _diff(self, request: web.BaseRequest) -> web.Response:
        tape, _, number = request.query.get("other", "").rpartition("#")
        if not tape or not _is_number(number):
            raise Refused(400, "other: name the exchange to compare with, such as x.tape%232")
        other = {"other_tape": tape, "other_path": await self._path(tape)}
        return await self._made(
            request,
            "diff",
            **other,
            other_exchange=int(number),
            full=request.query.get("full") == "1",
        )

    async def _raw(self, request: web.BaseRequest) -> web.Response:
        query = request.query
        answer = await self._made(
            request,
            "raw",
            side=_one_of(query, "side", _SIDES),
            offset=_number(query, "offset", 0),
            limit=_number(query, "limit", 1 << 20),
        )
        answer.headers["Content-Disposition"] = "attachment"
        return answer

    async def _copy(self, request: web.BaseRequest) -> web.Response:
        return await self._made(request, "copy", **{"as": _one_of(request.query, "as", COPIES)})

    # What is new.

    async def _follow(self, request: web.BaseRequest) -> web.StreamResponse:
        """Tell what is new as server-sent events, each time all of it: a slow page misses some."""
        only = filter_of(request.query)
        if self._listeners >= _MAX_LISTENERS:
            raise Refused(503, f"more than {_MAX_LISTENERS} pages are open")
        answer = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
        self._listeners += 1
        try:
            await answer.prepare(request)
            async for event in self._events(only):
                await answer.write(event)
        except ConnectionError:
            pass
        finally:
            self._listeners -= 1
        return answer

    async def _events(self, only: Filter) -> AsyncIterator[bytes]:
        told: News | None = None
        while True:
            if self._live.news is not told:
                told = self._live.news
                yield f"data: {await self._news(told, only)}\n\n".encode()
                continue
            try:
                async with asyncio.timeout(_ALIVE_S):
                    await self._live.change()
            except TimeoutError:
                yield b": nothing is new\n\n"

    async def _news(self, news: News, only: Filter) -> str:
        """Return news with the exchanges in progress that a filter leaves."""
        running = news["running"]
        if only != Filter():
            left = partial(filtered, running, only)
            running = await asyncio.get_running_loop().run_in_executor(self._readers, left)
        return json.dumps({**news, "running": running, "all_running": len(news["running"])})


def _static_files() -> Mapping[str, tuple[str, bytes]]:
    """Return the files of the page by their paths; no others are ever read."""
    found = {}
    for file in files("deltatape.inspector").joinpath("static").iterdir():
        kind = _TYPES.get(Path(file.name).suffix)
        if kind is not None:
            path = _PAGE if file.name == _PAGE else f"/static/{file.name}"
            found[path] = kind, file.read_bytes()
    return found


def _equal(given: str, known: str) -> bool:
    """Compare in a time that does not tell how much is right."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), known.encode())


def _json(value: object, status: int = 200) -> web.Response:
    return _json_text(json.dumps(value), status)


def _json_text(text: str, status: int = 200) -> web.Response:
    return web.Response(status=status, body=text.encode(), content_type="application/json")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18  # noqa: PLR2004 - 64 bits


def _number(query: Mapping[str, str], name: str, default: int) -> int:
    text = query.get(name)
    if text is None:
        return default
    if not _is_number(text):
        raise Refused(400, f"{name}: has to be a number from 0")
    return int(text)


def _one_of(query: Mapping[str, str], name: str, known: tuple[str, ...]) -> str:
    value = query.get(name, "")
    if value not in known:
        raise Refused(400, f"{name}: one of {', '.join(known)}")
    return value


def _place(query: Mapping[str, str]) -> tuple[str, int]:
    """Return the exchange that a query names."""
    tape, number = query.get("tape", ""), query.get("exchange", "")
    if not tape or not _is_number(number):
        raise Refused(400, "name an exchange: tape=ID&exchange=NUMBER")
    return tape, int(number)


_TIME = re.compile(r"(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?Z?)?", re.ASCII)
_DAY_NS = 86_400_000_000_000


def _moment(query: Mapping[str, str], name: str, *, last: bool = False) -> int | None:
    """Return a time of a query, in UTC; of a day the start, or the end if it is the `last` one."""
    text = query.get(name)
    if not text:
        return None
    match = _TIME.fullmatch(text)
    day, minute, second, fraction = match.groups() if match else ("", None, None, None)
    at_ns = parse_rfc3339(f"{day}T{minute or '00:00'}:{second or '00'}.{fraction or '0':0<9}Z")
    if not at_ns:
        raise Refused(400, f"{name}: a day such as 2026-11-26, or a time such as 2026-11-26T15:00Z")
    return at_ns + (_DAY_NS if last and minute is None else 0)


def filter_of(query: MultiMapping[str]) -> Filter:
    """Return the filter of a query; lists are written `code=T001&code=C` or `code=T001,C`.

    Raises:
        Refused: a part of it is invalid.
    """
    severity = query.get("severity", "")
    if severity and severity not in {each.value for each in Severity}:
        raise Refused(400, f"severity: one of {', '.join(Severity)}")
    codes = [code for each in query.getall("code", []) for code in each.split(",") if code]
    return Filter(
        text=query.get("q", "")[:_MAX_TEXT],
        codes=tuple(codes[:_MAX_VALUES]),
        severity=severity,
        providers=tuple(filter(None, query.getall("provider", [])[:_MAX_VALUES])),
        models=tuple(filter(None, query.getall("model", [])[:_MAX_VALUES])),
        from_ns=_moment(query, "from"),
        until_ns=_moment(query, "to", last=True),
        tape=query.get("tape", ""),
    )


def tapes_document(index: IndexReader) -> str:
    """Return the `ls` document: tapes by their ids, with their facts in the index."""
    now_ns = SystemClock().wall_ns()
    tapes = []
    for tape, said in index.tapes():
        analysed = (tape.indexed or tape.recording) and not tape.problem
        tapes.append(
            {
                "path": tape.id,
                "bytes": tape.bytes,
                "age_ns": now_ns - tape.modified_ns,
                "exchanges": said["exchanges"] if analysed or said["exchanges"] else None,
                "recording": tape.recording,
                "error": tape.problem,
                "analysed": analysed,
                "apps": said["apps"],
                "models": said["models"],
                "findings": said["findings"] if analysed else None,
                "worst": said["worst"] if analysed else None,
            }
        )
    return json.dumps({"version": 1, "tapes": tapes})
