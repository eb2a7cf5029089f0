import json

from deltatape.render.json_document import document, inert_json


def test_a_document_has_a_version_and_ends_its_line() -> None:
    assert json.loads(document(a=1)) == {"version": 1, "a": 1}
    assert document(a=1).endswith("}\n")


def test_no_text_in_it_is_a_command_of_a_ci_system() -> None:
    evil = "##[error]\n::error::"
    text = inert_json({"data": evil})
    assert "##[" not in text
    assert not [line for line in text.splitlines() if line.lstrip().startswith("::")]
    assert json.loads(text) == {"data": evil}


def test_no_character_in_it_can_act_on_a_terminal_and_none_is_lost() -> None:
    evil = "\x1b\x7f\x9b\u202e\n"
    text = inert_json([evil])
    assert text.isascii()
    assert text.replace("\n", "").isprintable()
    assert json.loads(text) == [evil]
