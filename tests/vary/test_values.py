from deltatape.diagnose.decode import decode
from deltatape.vary.message import message
from helpers.mutated import pasted
from helpers.varied import made, of, varied

BODY = 'data: {"choices":[],"a":"é"}\n\ndata: [DONE]\n\n'.encode()


def body(name: str) -> bytes:
    return made(name, pasted(BODY)).body.partition(b"\n")[0]


def test_json_is_written_otherwise() -> None:
    assert body("json-blanks") == 'data: { "choices" : [] , "a" : "é" }'.encode()
    assert body("json-escapes") == b'data: {"choices":[],"a":"\\u00e9"}'
    assert body("json-order") == 'data: {"a":"é","choices":[]}'.encode()
    assert body("unknown-member") == (
        'data: {"choices":[],"a":"é","obfuscation":"abcdefgh"}'.encode()
    )


def test_binary_messages_are_padded_under_another_name() -> None:
    bare = message({":message-type": "event", ":event-type": "metadata"}, b'{"usage":{}}')
    after = made("unknown-member", pasted(bare, "application/vnd.amazon.eventstream"))
    assert b'{"usage":{},"p":"abcdefgh"}' in after.body


def test_readers_that_refuse_unknown_members_get_none() -> None:
    assert varied("unknown-member", of("ai-sdk-ui")) is None


def test_a_member_of_that_name_stays_as_it_is() -> None:
    known = pasted(b'data: {"choices":[],"obfuscation":"x"}\n\n')
    assert varied("unknown-member", known) is None


def test_binary_messages_have_a_header_that_nobody_knows() -> None:
    before = of("bedrock-converse")
    after = made("unknown-header", before)
    assert after.body.count(b"x-trace") == len(decode(before).events)
    assert decode(after).anomalies == ()
    assert varied("unknown-header", of("openai-chat")) is None
