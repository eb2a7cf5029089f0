import pytest

from deltatape.tape.fields import MalformedError
from deltatape.tape.payload import Boundaries, Ending, Stop


@pytest.mark.parametrize("value", [None, {}, [-1], [1.0], [True], ["1"], [2, 1]])
def test_boundaries_are_ascending_offsets(value: object) -> None:
    with pytest.raises(MalformedError, match="offsets"):
        Boundaries.from_json(value)


def test_an_ending_without_detail_and_losses_is_short() -> None:
    value = {"reason": "complete", "bytes": 0, "sha256": "e3"}
    ending = Ending.from_json(value)
    assert (ending.detail, ending.recorder) == ("", {})
    assert ending.to_json() == value


def test_an_unknown_reason_of_an_ending_is_refused() -> None:
    with pytest.raises(MalformedError, match="one of complete, upstream_closed"):
        Ending.from_json({"reason": "bored", "bytes": 0, "sha256": ""})


def test_a_stop_knows_an_exit_code_only_of_a_child() -> None:
    assert Stop.from_json({"reason": "interrupted"}).exit_code is None
    assert Stop.from_json({"reason": "child-exit", "code": -9}).exit_code == -9
