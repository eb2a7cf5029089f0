from deltatape.model.stream import AnomalyKind
from deltatape.rules._framing import anomalies
from deltatape.rules.w003_byte_order_mark import ByteOrderMark
from helpers.contexts import context_of
from helpers.exchanges import TEXT, pasted


def test_a_stream_without_anomalies_gives_nothing() -> None:
    context = context_of(pasted(TEXT))
    kind = AnomalyKind.BYTE_ORDER_MARK
    assert not list(anomalies(ByteOrderMark(), context, kind, "what", "hint"))
