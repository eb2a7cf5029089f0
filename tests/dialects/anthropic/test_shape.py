from deltatape.dialects._anthropic.shape import is_document, is_error, is_event


def test_events_are_known_by_their_type() -> None:
    assert is_event({"type": "content_block_delta"})
    assert not is_event({"type": "ping"})
    assert not is_event({"type": ["message_start"]})


def test_a_document_has_blocks_and_a_stop_reason() -> None:
    message: dict[str, object] = {"type": "message", "content": [], "stop_reason": None}
    assert is_document(message)
    assert not is_document({**message, "content": "text"})
    assert not is_document({"type": "message", "content": []})


def test_errors_of_others_have_codes_or_numbers() -> None:
    error: dict[str, object] = {"type": "error", "error": {"type": "api_error", "message": "no"}}
    assert is_error(error)
    assert not is_error({**error, "sequence_number": 2})
    assert not is_error({"type": "error", "error": {"type": "server_error", "code": None}})
    assert not is_error({"type": "error", "error": {"message": "no"}})
    assert not is_error({"type": "error", "message": "no"})
    assert not is_error({"error": {"type": "api_error"}})
