import gzip
from dataclasses import replace

from deltatape.model.exchange import Headers
from deltatape.model.finding import Severity
from deltatape.model.stream import Anomaly, AnomalyKind
from deltatape.rules.w009_bad_content_coding import BadContentCoding
from helpers.chat import sse
from helpers.contexts import context_of
from helpers.exchanges import FINISH_TEXT, TEXT, found, one, pasted, timed

GZIP: Headers = ((b"content-type", b"text/event-stream"), (b"content-encoding", b"gzip"))
BODY = sse(TEXT, FINISH_TEXT)


def test_plain_text_under_the_name_of_gzip_is_reported() -> None:
    finding = one(timed((0.1, BODY), headers=GZIP), "W009")
    assert finding.severity is Severity.ERROR
    assert finding.message.startswith("the body cannot be decoded")


def test_a_limit_of_the_analysis_is_nobodys_fault() -> None:
    context = context_of(pasted(TEXT))
    place = context.stream.events[0].place
    limit = Anomaly(kind=AnomalyKind.TOO_LARGE, detail="64 MiB", place=place, event=None)
    stream = replace(context.stream, anomalies=(limit,))
    (finding,) = BadContentCoding().check(replace(context, stream=stream))
    assert (finding.severity, finding.blame) == (Severity.WARNING, None)


def test_a_body_that_fits_its_coding_is_fine() -> None:
    assert not found(timed((0.1, gzip.compress(BODY)), headers=GZIP), "W009")
