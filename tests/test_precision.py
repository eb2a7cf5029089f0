"""On captured streams nothing is reported but what is told, with its reason."""

from deltatape.model.finding import Severity
from helpers.corpus import every_finding, needs_corpus, reasons


@needs_corpus
def test_every_error_is_listed_with_a_reason_and_nothing_else_is() -> None:
    found = {
        case.id: sorted({code for code, kind in seen if kind is Severity.ERROR})
        for case, seen in every_finding()
    }
    assert {stream: codes for stream, codes in found.items() if codes} == {
        stream: list(codes) for stream, (codes, _) in reasons().errors.items()
    }


@needs_corpus
def test_every_warning_and_remark_has_a_reason_and_nothing_else_has() -> None:
    found = {
        code for _, seen in every_finding() for code, kind in seen if kind is not Severity.ERROR
    }
    assert found == set(reasons().others)
