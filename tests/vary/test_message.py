from deltatape.vary.message import message, with_header
from deltatape.wire.aws_eventstream import EventStreamDecoder


def test_a_message_is_read_as_what_it_was_made_of() -> None:
    decoder = EventStreamDecoder()
    made = message({":message-type": "event", ":event-type": "chunk"}, b'{"a":1}')
    (event,) = decoder.feed(made, 0, None)
    assert (event.type, event.data, event.exception) == ("chunk", '{"a":1}', False)
    assert decoder.anomalies == []


def test_a_header_more_changes_nothing_else() -> None:
    made = message({":message-type": "event", ":event-type": "chunk"}, b'{"a":1}')
    more = with_header(made, "x", "y")
    assert more != made
    both = [EventStreamDecoder().feed(each, 0, None)[0] for each in (made, more)]
    assert both[0][:3] == both[1][:3]
    assert more == message({":message-type": "event", ":event-type": "chunk", "x": "y"}, b'{"a":1}')
