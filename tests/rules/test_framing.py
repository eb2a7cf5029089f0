from deltatape.model.stream import AnomalyKind
from deltatape.rules._framing import anomalies, is_torn
from deltatape.rules.w003_byte_order_mark import ByteOrderMark
from helpers.contexts import context_of
from helpers.eventstream import event
from helpers.exchanges import TEXT, from_bytes, pasted


def test_a_stream_without_anomalies_gives_nothing() -> None:
    context = context_of(pasted(TEXT))
    kind = AnomalyKind.BYTE_ORDER_MARK
    assert not list(anomalies(ByteOrderMark(), context, kind, "what", "hint"))


def test_a_body_that_ends_inside_an_event_is_torn_in_every_format() -> None:
    message = event("x", 1)
    for body in (b"data: {}\n\ndata: {", b'{}\n{"a', b"[{},{", message + message[:30]):
        assert is_torn(context_of(from_bytes(body)).stream), body
    for body in (
        b"data: {}\n\n",
        b"{}\n{}",
        b"[{},",
        message + b"no message",
        b"data: {}\n\nid: 1",
    ):
        assert not is_torn(context_of(from_bytes(body)).stream), body
