"""What a digest keeps of the fragments in which a text came."""

import json

import pytest

from deltatape.diagnose.digest import digest
from deltatape.model.digest import MAX_CONTENT, Digest
from deltatape.model.exchange import Exchange, Headers
from helpers.chat import calls, choice, entry, sse
from helpers.exchanges import FINISH_TEXT, asks, pasted
from helpers.taped import taped

ACCENT = "é".encode()


def streamed(*events: dict[str, object], path: str) -> Digest:
    body = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)
    url = f"http://127.0.0.1{path}"
    return digest(Exchange.from_body(body.encode(), content_type="text/event-stream", url=url))


def responses(*parts: tuple[int, str]) -> Digest:
    deltas: list[dict[str, object]] = [
        {
            "type": "response.output_text.delta",
            "output_index": index,
            "content_index": 0,
            "item_id": f"msg_{index}",
            "delta": text,
        }
        for index, text in parts
    ]
    return streamed(*deltas, path="/v1/responses")


def messages(*parts: tuple[int, str]) -> Digest:
    events: list[dict[str, object]] = [
        {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}}
    ]
    for index in sorted({index for index, _ in parts}):
        block = {"type": "text", "text": ""}
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [
            {
                "type": "content_block_delta",
                "index": index,
                "delta": {"type": "text_delta", "text": text},
            }
            for of, text in parts
            if of == index
        ]
        events.append({"type": "content_block_stop", "index": index})
    return streamed(*events, path="/v1/messages")


def test_fragments_end_where_the_events_do() -> None:
    found = digest(pasted(choice({"content": "Let "}), choice({"content": "me"}), FINISH_TEXT))
    assert found.content_ends == (4, 6)
    assert responses((0, "Let "), (0, "me")).content_ends == (4, 6)
    assert messages((0, "Let "), (0, "me")).content_ends == (4, 6)


def test_parts_of_a_message_are_no_fragments() -> None:
    assert responses((0, "Let me see."), (1, "It is"), (1, " 13")).content == "Let me see.It is 13"
    assert responses((0, "Let me see."), (1, "It is"), (1, " 13")).content_ends == ()
    assert messages((0, "Let me see."), (1, "It is"), (1, " 13")).content_ends == ()


def test_events_that_name_their_part_only_now_and_then_are_of_one_part() -> None:
    plain = {"choices": [{"delta": {"content": "Let "}}]}
    found = digest(pasted(plain, choice({"content": "me"}), FINISH_TEXT))
    assert found.content_ends == (4, 6)


def test_parts_of_a_document_are_no_fragments() -> None:
    blocks = [{"type": "text", "text": "Let me see."}, {"type": "text", "text": "It is 13."}]

    def document(*content: object) -> Digest:
        body = {
            "type": "message",
            "role": "assistant",
            "content": content,
            "stop_reason": "end_turn",
        }
        return digest(
            Exchange.from_body(
                json.dumps(body).encode(),
                content_type="application/json",
                url="http://127.0.0.1/v1/messages",
            )
        )

    assert document(*blocks).content_ends == ()
    assert document(blocks[0]).content_ends == (11,)


def test_of_a_long_text_only_the_fragments_that_are_kept_are_reported() -> None:
    long = "x" * (MAX_CONTENT - 1)
    found = digest(pasted(choice({"content": long}), choice({"content": "yz"}), FINISH_TEXT))
    assert len(found.content) == MAX_CONTENT
    assert found.content_ends == (MAX_CONTENT - 1,)


def cut_in(place: int, headers: Headers = ((b"Content-Type", b"text/event-stream"),)) -> Digest:
    """Two fragments, of which the second has an accent, read in two pieces."""
    data = b'data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n'
    body = data % b"caf" + data % b"t\xc3\xa9" + sse(FINISH_TEXT)
    at = body.index(ACCENT) + place
    return digest(taped([(10, body[:at]), (20, body[at:])], body=asks(), headers=headers))


@pytest.mark.parametrize(("place", "torn"), [(0, ()), (1, (1,)), (2, ())])
def test_a_read_that_ends_within_a_character_tears_its_fragment(
    place: int, torn: tuple[int, ...]
) -> None:
    assert cut_in(place).torn == torn


@pytest.mark.parametrize(("place", "torn"), [(0, ()), (1, (1,)), (2, ())])
def test_so_does_one_within_the_arguments_of_a_call(place: int, torn: tuple[int, ...]) -> None:
    body = sse(
        calls(entry(0, "c1", name="get", arguments='{"a":"')),
        calls(entry(0, arguments="X")),
        calls(entry(0, arguments='"}')),
    ).replace(b"X", ACCENT)
    at = body.index(ACCENT) + place
    (call,) = digest(taped([(10, body[:at]), (20, body[at:])], body=asks())).calls
    assert call.torn == torn


def test_of_coded_bytes_nobody_knows_what_a_read_tears() -> None:
    coded: Headers = ((b"Content-Type", b"text/event-stream"), (b"Content-Encoding", b"identity"))
    assert cut_in(1, coded).torn == ()


def test_a_request_says_which_model_it_wants() -> None:
    assert digest(pasted(request=asks())).model == "m"
    assert digest(pasted(request={"messages": []})).model is None
