"""C002: arguments that the application repeats differently from how they were delivered."""

import json
import unicodedata
from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.digest import Pair, ReadBack
from deltatape.model.finding import Confidence, Excluded, Finding, Severity, weaker
from deltatape.rules._conversation import AppClaim, Grade, app_finding, called, was_delivered
from deltatape.rules.edits import Edit, breaks_schema, explain
from deltatape.rules.evidence import excerpt
from deltatape.rules.repeated import (
    CLEAN,
    Damage,
    Relation,
    differences,
    relation,
    takes_deltas,
)
from deltatape.rules.words import count
from deltatape.wire.json_value import parse

_SHORT = 200
"""Characters of arguments that nobody leaves out of a history to save room."""
_OF_FRAGMENTS = frozenset({Damage.DECODED, Damage.TRIMMED})
"""What leaves valid JSON, and is no edit all the same: it stops where fragments or reads do."""
_UNLIKE_EDITS = frozenset({Damage.GLUED, Damage.TORN})
"""What somebody might do to a text, though nobody has a reason to."""
_LONG = 2000
"""Characters of arguments of which histories keep only the beginning."""


class ArgumentsChangedByApp:
    r"""The application repeats other arguments than were delivered.

    ## What it does
    Compares the arguments of each delivered call with those that the application's next request
    repeats, as JSON values: spacing and order do not matter, and the empty string is `{}`. Names
    the first path that differs, and what the application's text is made of.

    It is proven where the text is made of the delivered fragments as only a mistake makes it: some
    lost, some doubled, those of two calls mixed, the text cut, encoded again, decoded wrongly. What
    the tool's schema, double precision, a mark of elision, or a note in a result explains is told
    as a remark. Where nothing but characters outside ASCII is missing, and others of the same
    script are there, it is likely: pieces were decoded one by one. Where two valid objects differ
    otherwise it is `possible`.

    ## Why is this bad
    The tool ran, if at all, with something that the model did not say. The wire was in order: the
    mistake is in the code that joins the fragments.

    ## Innocent explanations
    - The framework validates arguments and repeats the result: defaults filled in, nulls and
      unknown fields dropped, types and enumerations converted.
    - JavaScript reads numbers as doubles.
    - Somebody reviewed the call and changed it.
    - The application keeps its history short, and leaves long arguments out.
    - A filter leaves out what the next program cannot take, such as emoji.
    - The call was not delivered yet when the request left.

    ## Example
    ```
    reply of #1:      {"city":"Rome"}           in 3 fragments
    request of #2:    "arguments": ""
    ```

    ## Fix
    Append every fragment, the one in the first event included, to the entry of its `index`. Parse
    once, at the end. Never take the arguments from the event that opens a call.

    ## References
    - https://platform.openai.com/docs/guides/function-calling
    - https://github.com/bojieli/ai-agent-book/issues/194
    - https://github.com/diegosouzapw/OmniRoute/issues/3762
    """

    code: ClassVar[str] = "C002"
    name: ClassVar[str] = "arguments-changed-by-app"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, read_back: ReadBack) -> Iterator[Finding]:
        """See `ConversationRule.check`."""
        if not read_back.reply.whole:
            return
        for pair in read_back.pairs:
            if pair.said.status not in CLEAN or not was_delivered(read_back, pair.said):
                continue
            found = differences(pair.said, pair.heard)
            if not found:
                continue
            related = relation(pair.said, pair.heard, read_back.reply.calls)
            schema = read_back.reply.schemas.get(pair.said.name or "")
            edit = explain(found, schema, [each.content for each in read_back.following])
            grade = _graded(read_back, pair, related, edit)
            yield app_finding(
                self,
                read_back,
                AppClaim(
                    message=_message(read_back, pair, found[0].path, grade.says),
                    hint=grade.hint,
                    evidence=pair.heard.arguments or "(no arguments)",
                    severity=grade.severity,
                    blame=grade.blame,
                    said=pair.said,
                    heard=pair.heard,
                    confidence=weaker(grade.confidence, read_back.confidence),
                    excluded=grade.excluded,
                ),
            )


_FACT_HINT = "nothing to fix, unless the tool was to get the value exactly as delivered"
_LOOK = (
    "look at what changes the arguments between the reply and the next request: a person's review,"
    " a validation, a rewrite of the history"
)
_DECODER = (
    "decode the bytes of the whole response with one incremental UTF-8 decoder, never each piece"
    " alone"
)
_NO_EDIT = "somebody edited the arguments, or the framework validated them"


def _graded(read_back: ReadBack, pair: Pair, related: Relation | None, edit: Edit | None) -> Grade:
    """How sure it is that a change is a mistake in the code that joins fragments."""
    if takes_deltas(pair.said, pair.heard):
        return Grade(
            "these are its deltas as they came, and the event that ends the call has others (T015)",
            "take the arguments from the event that ends the call, where there is one",
            Confidence.PROVEN,
            severity=Severity.INFO,
            blame=None,
        )
    if related is None:
        return _of_values(pair, edit)
    damage, said = related.damage, pair.said
    if damage in (Damage.EMPTIED, Damage.EMPTY_OBJECT):
        return _of_nothing(read_back, pair, related, edit)
    if damage is Damage.OTHER_CALL and _is_permuted(read_back):
        return Grade(related.says, _LOOK, Confidence.POSSIBLE, severity=Severity.WARNING)
    valid = parse(pair.heard.arguments).error is None and damage is not Damage.ENCODED
    if valid and edit is not None and damage not in _OF_FRAGMENTS | _UNLIKE_EDITS:
        return _fact(edit)
    because = f"{related.says}, as no edit leaves it"
    if damage is Damage.CUT and len(said.arguments) > _SHORT:
        whole = len(said.arguments) > _LONG
        doubt = Confidence.POSSIBLE if whole else Confidence.LIKELY
        elided = Excluded(
            "the application keeps only the beginning of long arguments",
            f"they have no more than {len(said.arguments)} characters, and no mark stands for the"
            " rest",
        )
        return Grade(related.says, related.hint, doubt, () if whole else (elided,))
    if valid and damage not in _OF_FRAGMENTS:
        exactly = Excluded(_NO_EDIT, f"{related.says}, character by character")
        return Grade(related.says, related.hint, Confidence.LIKELY, (exactly,))
    excluded = (
        Excluded(_NO_EDIT, because),
        Excluded(
            "the arguments were left out to save room",
            f"what is left is no mark of an elision: {excerpt(pair.heard.arguments, 40)!r}",
        ),
        Excluded(
            "the call had not been delivered when the request left",
            f"its last fragment had come, on line {said.line}",
        ),
    )
    return Grade(related.says, related.hint, Confidence.PROVEN, excluded)


def _of_nothing(read_back: ReadBack, pair: Pair, related: Relation, edit: Edit | None) -> Grade:
    """Nothing is left of the arguments: histories that are kept short have that, too."""
    said = pair.said
    if edit is not None:
        return _fact(edit)
    short = len(said.arguments) <= _SHORT
    if not (short and read_back.latest):
        return Grade(related.says, _LOOK, Confidence.POSSIBLE, severity=Severity.WARNING)
    room = Excluded(
        "old or long arguments were left out to save room",
        f"it is the latest call, and has {count(len(said.arguments), 'character')}",
    )
    broken = breaks_schema(read_back.reply.schemas.get(said.name or ""), pair.heard.arguments)
    if related.damage is Damage.EMPTY_OBJECT:
        needs = (
            (Excluded(_NO_EDIT, "the tool's schema requires members that an empty object lacks"),)
            if broken
            else ()
        )
        return Grade(related.says, related.hint, Confidence.LIKELY, (room, *needs))
    text = Excluded(_NO_EDIT, "no edit makes an empty text of an object: that is no JSON")
    return Grade(related.says, related.hint, Confidence.PROVEN, (room, text))


def _of_values(pair: Pair, edit: Edit | None) -> Grade:
    """Two values that differ, and no fragment explains it."""
    if edit is not None:
        return _fact(edit)
    gone = _undecoded(pair.said.arguments, pair.heard.arguments)
    if gone:
        return Grade(
            f"{gone}, as where pieces of the response are decoded one by one",
            _DECODER,
            Confidence.LIKELY,
            (Excluded("a filter left such characters out", gone),),
        )
    return Grade(
        "no fragment of the reply explains it: the app may have changed it on purpose",
        _LOOK,
        Confidence.POSSIBLE,
        severity=Severity.WARNING,
    )


def _undecoded(delivered: str, repeated: str) -> str:
    """What says that a decoder lost characters, as a clause; "" if nothing does.

    Some characters outside ASCII are missing and nothing else is, and others of the same script are
    there: a filter would have taken these, too.
    """
    one, other = (
        json.dumps(parse(text).value, ensure_ascii=False, sort_keys=True)
        for text in (delivered, repeated)
    )
    gone, at = set[str](), 0
    for char in one:
        if at < len(other) and other[at] == char:
            at += 1
        else:
            gone.add(char)
    kept = {char for char in other if not char.isascii()}
    if not gone or at < len(other) or any(char.isascii() for char in gone):
        return ""
    scripts = {_script(char) for char in gone}
    alike = {char for char in kept if _script(char) in scripts}
    if scripts != {_script(char) for char in alike}:
        return ""
    return f"{min(gone)!r} is missing, and others like it are there ({min(alike)!r})"


def _script(char: str) -> str:
    """`LATIN`, `CJK`: the first word of a character's name."""
    return unicodedata.name(char, "").partition(" ")[0]


def _fact(edit: Edit) -> Grade:
    return Grade(edit.says, _FACT_HINT, Confidence.PROVEN, severity=Severity.INFO, blame=None)


def _is_permuted(read_back: ReadBack) -> bool:
    """Whether just the ids went round: every delivered call is there, under another's id."""
    delivered = sorted((one.said.name or "", one.said.arguments) for one in read_back.pairs)
    repeated = sorted((one.heard.name or "", one.heard.arguments) for one in read_back.pairs)
    return delivered == repeated


def _message(read_back: ReadBack, pair: Pair, path: str, why: str) -> str:
    said, heard = excerpt(pair.said.arguments, 80), excerpt(pair.heard.arguments, 80)
    extra = len(read_back.extra)
    more = (
        f"; it also repeats {count(extra, 'call')} that the wire did not deliver" if extra else ""
    )
    return (
        f"{called(read_back, pair.said)} was delivered with {said!r}, the app repeats {heard!r}"
        f" (first difference at {path}){': ' if why else ''}{why}{more}"
    )
