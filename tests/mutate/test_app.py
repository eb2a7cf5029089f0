from deltatape.wire.json_edit import at
from helpers.mutated import WORDS, changed, of_type, pasted, recorded, said

SDK_UI = recorded("ai-sdk-ui")


def test_the_last_piece_of_an_input_is_late() -> None:
    kinds = [at(value, "type") for value in said(changed("agui-order", SDK_UI))]
    place = kinds.index("tool-input-available")
    assert kinds[place + 1] == "tool-input-delta"
    assert len(kinds) == len(said(SDK_UI))
    assert changed("agui-order", WORDS) is None
    alone = pasted(b'data: {"type":"tool-input-available","toolCallId":"a"}\n\n')
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
