from dataclasses import replace

from deltatape.model.exchange import Source
from deltatape.wire.json_edit import at
from helpers.mutated import (
    ONE,
    WORDS,
    call_entries,
    changed,
    chat,
    event_values,
    imported,
    joined_arguments,
    of_type,
    reads,
    recorded,
)

NS = 10**9
SDK_UI = recorded("ai-sdk-ui")
MESSAGES = recorded("anthropic-messages")
ARRAY = imported(b"[{}]", "application/json")


def test_a_comment_is_data() -> None:
    made = event_values(changed("sse-comment-as-data", ONE))
    assert made.count(": PROCESSING") == 1
    assert [value for value in made if value != ": PROCESSING"] == event_values(ONE)
    assert changed("sse-comment-as-data", ARRAY) is None
    assert changed("sse-comment-as-data", imported(b": nothing\n\n")) is None


def test_an_event_goes_on_as_another_one() -> None:
    for seed in range(10):
        made = event_values(changed("sse-interleaved-json", ONE, seed))
        (mixed,) = (one for one in made if isinstance(one, str) and "data: {" in one)
        assert mixed.startswith("{")
        assert len(made) == len(event_values(ONE)) - 1
    assert changed("sse-interleaved-json", ARRAY) is None
    assert changed("sse-interleaved-json", chat()) is None
    short = imported(b"data: 1\n\ndata: {}\n\n")
    assert event_values(changed("sse-interleaved-json", short)) == ["data: {}"]


def test_a_proxy_hands_all_on_at_once() -> None:
    made = changed("proxy-buffered", ONE)
    assert made
    assert made.body == ONE.body
    (late,) = {read.t_ns for read in made.reads}
    assert late >= ONE.reads[-1].t_ns + 5 * NS
    assert made.end
    assert made.end.t_ns > late
    assert changed("proxy-buffered", replace(ONE, source=Source.IMPORT)) is None


def test_a_call_pauses_for_minutes() -> None:
    for seed in range(5):
        made = changed("long-silent-tool", MESSAGES, seed)
        assert made
        assert made.body == MESSAGES.body
        pairs = zip(MESSAGES.reads, made.reads, strict=True)
        delays = [new.t_ns - old.t_ns for old, new in pairs]
        assert delays == sorted(delays)
        assert len(set(delays)) == 2
        assert delays[0] == 0
        assert 60 * NS <= delays[-1] < 150 * NS


def test_a_call_in_one_read_cannot_pause() -> None:
    assert changed("long-silent-tool", replace(MESSAGES, reads=reads(MESSAGES.body))) is None
    assert changed("long-silent-tool", WORDS) is None
    assert changed("long-silent-tool", replace(MESSAGES, source=Source.IMPORT)) is None


def test_a_call_comes_in_one_event() -> None:
    (entry,) = call_entries(changed("no-tool-streaming", ONE))
    assert at(entry, "function", "arguments") == joined_arguments(ONE)


def test_the_last_blank_line_is_missing() -> None:
    made = changed("sse-last-event-unterminated", ONE)
    assert made
    assert made.body == ONE.body[:-1]
    crlf = changed("sse-last-event-unterminated", imported(b"data: 1\r\n\r\n"))
    assert crlf
    assert crlf.body == b"data: 1\r\n"
    assert changed("sse-last-event-unterminated", ARRAY) is None
    assert changed("sse-last-event-unterminated", imported(b"data: 1\n\n: bye")) is None
    assert changed("sse-last-event-unterminated", imported(b"data: 1\n\n: bye\n")) is None


def test_events_lose_their_names() -> None:
    made = changed("sse-no-event-line", MESSAGES)
    assert made
    assert b"event: " not in made.body
    assert event_values(made) == event_values(MESSAGES)
    assert changed("sse-no-event-line", ONE) is None


def test_the_last_piece_of_an_input_is_late() -> None:
    kinds = [at(value, "type") for value in event_values(changed("agui-order", SDK_UI))]
    place = kinds.index("tool-input-available")
    assert kinds[place + 1] == "tool-input-delta"
    assert len(kinds) == len(event_values(SDK_UI))
    assert changed("agui-order", WORDS) is None
    alone = imported(b'data: {"type":"tool-input-available","toolCallId":"a"}\n\n')
    assert changed("agui-order", alone) is None


def test_an_input_does_not_begin() -> None:
    left = of_type(changed("ui-no-start", SDK_UI), "tool-input-start")
    assert len(left) == len(of_type(SDK_UI, "tool-input-start")) - 1
    assert changed("ui-no-start", WORDS) is None


def test_a_call_comes_per_fragment() -> None:
    made = of_type(changed("app-toolcall-per-chunk", recorded("app-events")), "tool_call")
    assert len(made) == 6
    assert {str(at(value, "name")) for value in made} == {"None"}
    assert all(isinstance(at(value, "arguments"), int) for value in made)
    assert changed("app-toolcall-per-chunk", WORDS) is None
