"""The tables of a dataset: their columns, and how their files are named.

Arrow schemas, docs/dataset.md and queries are made from it.
Columns are added to the tables, never renamed.
"""

import enum
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

VERSION = 1
"""The version of the tables; `deltatape.schema` in the metadata of every file."""
VERSION_KEY = "deltatape.schema"
RULES_KEY = "deltatape.rules"
"""The metadata key of the version of the rules."""
JOINED = "JOIN"
"""In place of a tape's key in the name of a file: findings from joining tapes."""
NO_DAY = "1970-01-01"
"""The day of tapes without a date."""
SUFFIX = ".parquet"
_DIGITS = 12
"""Hexadecimal digits of the version of the rules in file names."""


class Type(enum.StrEnum):
    """The type of a column."""

    TEXT = "text"
    WORD = "word"
    """A text with few different values."""
    TEXTS = "list of texts"
    NUMBER = "number"
    """64 bits, signed."""
    FLAG = "true or false"
    TIME = "time"
    """In UTC, to the microsecond."""
    BYTES = "bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column; unknown values are null, unless it is `required`."""

    name: str
    type: Type
    about: str
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of the dataset: a folder, with a folder for each day."""

    name: str
    about: str
    columns: tuple[Column, ...]


def _key(name: str, of_type: Type, about: str) -> Column:
    return Column(name=name, type=of_type, about=about, required=True)


def _column(name: str, of_type: Type, about: str) -> Column:
    return Column(name=name, type=of_type, about=about)


_TAPE = _key("tape", Type.WORD, "the tape's key in the dataset: joins the tables")
_EXCHANGE = _key("exchange", Type.NUMBER, "its number on the tape, from 1")
_RULES = _key("rules", Type.WORD, "the version of the rules that found this")

TAPES = Table(
    name="tapes",
    about="A row for each tape, also for one that could not be read: `problem` says why.",
    columns=(
        _TAPE,
        _column(
            "id", Type.TEXT, "the id in its header, a ULID; copies have that of their original"
        ),
        _key("source", Type.TEXT, "where it is: a path or a URL"),
        _column("etag", Type.TEXT, "what the object store calls this version of it"),
        _key("bytes", Type.NUMBER, "its size"),
        _column("recorded_at", Type.TIME, "when the recording began"),
        _column("gateway", Type.WORD, "which recorder made it, where its folder says so"),
        _column("tool", Type.WORD, "the program that wrote it: `deltatape 0.1.0`"),
        _RULES,
        _key("exchanges", Type.NUMBER, "how many it has"),
        _key("findings", Type.NUMBER, "how many there are on them"),
        _column("problem", Type.TEXT, "why it could not be read; then it has no other rows"),
        _column("scanned_at", Type.TIME, "when it was read"),
    ),
)
EXCHANGES = Table(
    name="exchanges",
    about=(
        "A row for each exchange: what `deltatape ls --exchanges --format json` says of it, and who"
        " sent it."
    ),
    columns=(
        _TAPE,
        _EXCHANGE,
        _key("id", Type.TEXT, "its id, a ULID"),
        _column("at", Type.TIME, "when the request came"),
        _column("t_ns", Type.NUMBER, "the same in nanoseconds since the tape began"),
        _column("provider", Type.WORD, "whose API is at the upstream's host, else that host"),
        _column("model", Type.WORD, "the model that the request names, else the reply"),
        _key("dialect", Type.WORD, "the wire format; `unknown` if it is none that deltatape reads"),
        _key("method", Type.WORD, "the request's method"),
        _key("target", Type.TEXT, "the request's target, with asterisks for credentials"),
        _column("status", Type.NUMBER, "of the response; null: there is none"),
        _column("duration_ns", Type.NUMBER, "from the request to the end"),
        _column("first_event_ns", Type.NUMBER, "from the request to the response's first event"),
        _column("input_tokens", Type.NUMBER, "as the reply states them, those of a cache included"),
        _column("output_tokens", Type.NUMBER, "the same, those of reasoning included"),
        _key("request_bytes", Type.NUMBER, "the size of the request's body"),
        _key("response_bytes", Type.NUMBER, "the size of the response's body"),
        _key("calls", Type.NUMBER, "how many calls the application is to run"),
        _column("finish", Type.WORD, "the provider's own finish reason"),
        _column("ending", Type.WORD, "how the transport ended"),
        _key("findings", Type.NUMBER, "how many count for it; see `about` of a finding"),
        _key("codes", Type.TEXTS, "the codes of these, each once"),
        _column("worst_code", Type.WORD, "the finding on which a verdict rests"),
        _column("worst_severity", Type.WORD, "its severity"),
        _column("worst_blame", Type.WORD, "whose fault it is"),
        _column("worst_confidence", Type.WORD, "how sure that is"),
        _key("dead_zones", Type.NUMBER, "how many silences its findings report"),
        _key("dead_ns", Type.NUMBER, "how long these are together"),
        _key(
            "thread", Type.NUMBER, "the first exchange of its conversation, as far as the tape has"
        ),
        _column("before", Type.NUMBER, "the exchange that its request goes on from or repeats"),
        _key("marks", Type.TEXTS, "what it is in its conversation: `retry`, `lost-call`, ..."),
        _column("client_name", Type.WORD, "the program of the request's `User-Agent`"),
        _column("client_version", Type.WORD, "its version"),
        _column("traceparent", Type.TEXT, "the request's `traceparent` header"),
        _RULES,
    ),
)
CALLS = Table(
    name="calls",
    about="A row for each tool call of a reply.",
    columns=(
        _TAPE,
        _EXCHANGE,
        _key("choice", Type.NUMBER, "in which answer of the reply it is, from 0"),
        _key("kind", Type.WORD, "`function`, `custom`, `server`, `text`, ..."),
        _key("call", Type.NUMBER, "its place among the calls of that kind in the answer, from 0"),
        _column("call_id", Type.TEXT, "the provider's id"),
        _column("name", Type.WORD, "the tool"),
        _key(
            "status",
            Type.WORD,
            "what a correct client can do with it: `complete`, `truncated`, ...",
        ),
        _key("repairs", Type.TEXTS, "the codes of what had to be mended"),
        _key("fragments", Type.NUMBER, "in how many pieces its arguments came"),
        _key("arguments_bytes", Type.NUMBER, "the size of the arguments in UTF-8"),
        _key("arguments_sha256", Type.TEXT, "the SHA-256 of the same bytes"),
        _column(
            "schema_ok",
            Type.FLAG,
            "whether complete arguments fit the schema of the tool in the request; null: the"
            " request has none, or it was not checked completely",
        ),
        _RULES,
    ),
)
FINDINGS = Table(
    name="findings",
    about=(
        "A row for each finding: where `across` is false, exactly those of `deltatape check` on the"
        " tape."
    ),
    columns=(
        _TAPE,
        _key("exchange", Type.NUMBER, "the exchange on which it is"),
        _key(
            "about",
            Type.NUMBER,
            "the exchange that it counts for: a lost call is found on the request that lacks it,"
            " and counts for the reply that had it",
        ),
        _column("call", Type.NUMBER, "the call that its message names, by `call` of the calls"),
        _key("code", Type.WORD, "of the rule; see findings.md"),
        _key("name", Type.WORD, "of the rule"),
        _key("severity", Type.WORD, "`error`, `warning` or `info`"),
        _column("blame", Type.WORD, "whose fault it is; null: the tape does not prove that"),
        _key("confidence", Type.WORD, "`proven`, `likely` or `possible`"),
        _key("message", Type.TEXT, "what was found"),
        _column("line", Type.NUMBER, "the line of the tape that completes the evidence"),
        _column("event", Type.NUMBER, "the event of the response, from 0"),
        _column("t_ns", Type.NUMBER, "when, in nanoseconds since the tape began"),
        _column("phase", Type.WORD, "of a dead zone (D001, D004): at what point of the answer"),
        _column("silent_ns", Type.NUMBER, "of a dead zone: how long nothing came"),
        _key("across", Type.FLAG, "whether only joining several tapes shows it"),
        _key(
            "withdrawn",
            Type.FLAG,
            "whether joining shows that the finding with the same tape, exchange, code and"
            " fingerprint is not so: another tape answers the call",
        ),
        _key("fingerprint", Type.TEXT, "the same for the same defect on later recordings"),
        _RULES,
    ),
)
DIGESTS = Table(
    name="digests",
    about=(
        "A row for each request with a history, with what is needed to compare it with others, also"
        " of other tapes. Those of a tape and root can only be read together, in their order."
        " Unlike the other tables, this one has texts of the conversations."
    ),
    columns=(
        _TAPE,
        _EXCHANGE,
        _key("turn", Type.NUMBER, "which request of the exchange: a WebSocket has several, from 0"),
        _column("at", Type.TIME, "when the request came"),
        _key(
            "root",
            Type.TEXT,
            "a hash that all requests share whose histories begin alike",
        ),
        _column("reply_id", Type.TEXT, "the provider's id of the reply"),
        _column("previous", Type.TEXT, "the id of the stored reply that the request goes on from"),
        _key("messages", Type.NUMBER, "how long its history is"),
        _key("calls", Type.NUMBER, "how many calls the reply has"),
        _key("results", Type.NUMBER, "of how many calls the request brings results"),
        _column("recorded_ns", Type.NUMBER, "when the tape began, in nanoseconds since 1970"),
        _key(
            "alone",
            Type.FLAG,
            "whether the exchanges of its tape were not compared with each other: others of their"
            " conversations are on the tapes of other processes",
        ),
        _key("digest", Type.BYTES, "the digest; see `scan/digest_codec.py`"),
        _RULES,
    ),
)
TABLES: Mapping[str, Table] = MappingProxyType(
    {table.name: table for table in (TAPES, EXCHANGES, CALLS, FINDINGS, DIGESTS)}
)
"""By name. A scan writes `tapes` last: a tape without a row there is read again."""
BEFORE = "findings_before"
"""The folder with the findings of the previous rules, for comparison; columns as `findings`."""


def rules_key(rules: str) -> str:
    """Return the short name of `rules` (see `store.rule_set`) in the names of files."""
    return hashlib.sha256(f"{VERSION}\n{rules}".encode()).hexdigest()[:_DIGITS]


def file_name(tape: str, rules: str) -> str:
    """Return the name of a tape's file in a table."""
    return f"{tape}-{rules}{SUFFIX}"


def path_of(table: str, day: str, name: str) -> str:
    """Return the path of a file in the dataset."""
    return f"{table}/day={day}/{name}"
