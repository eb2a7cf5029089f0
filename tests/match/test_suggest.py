import pytest

from deltatape.match.difference import differing
from deltatape.match.suggest import MOST_DIFFERENCES, suggested
from deltatape.match.volatile import VolatileRules

UUIDS = ("0b9e4b1c-6f0e-4d5c-9a53-0d4b0c8a1f11", "5f2d7a90-1111-4222-8333-944455566677")


def between(recorded: object, received: object) -> tuple[str, ...]:
    return suggested(differing(recorded, received))


@pytest.mark.parametrize(
    ("recorded", "received", "options"),
    [
        ("Today is 2026-11-26.", "Today is 2026-12-03.", ("date",)),
        ("in /home/ann/app", "in /home/bob/app", ("home",)),
        ("in /home/ann/app", "in /opt/ci/app", ("path",)),
        (f"id {UUIDS[0]}", f"id {UUIDS[1]}", ("uuid",)),
        ("at 98e22fd0", "at 59d85150a", ("hash",)),
        ("http://127.0.0.1:8377/", "http://127.0.0.1:41977/", ("port",)),
        ("PID: 4242", "PID: 77", ("pid",)),
        ("on 2026-11-26 in /w/1, pid 12", "on 2026-12-03 in /w/2, pid 13", ("date", "pid", "path")),
        (
            "agent number 17 of 2026-11-26",
            "agent number 18 of 2026-12-03",
            ("date", "/agent number ([0-9]+)/"),
        ),
        ("a run-7f3. Yes", "a run-81. Yes", ("/a run-([0-9a-f]+)/",)),
        ("key ab-12_x (1)", "key cd-34_y (1)", (r"/key ([\w.:+/-]+)/",)),
        ("sess1on AbC1, sess1on Xyz2", "sess1on Qed3, sess1on Rst4", ("/sess1on ([0-9A-Za-z]+)/",)),
        ("what?\nnumber 1", "what?\nnumber 2", ("/number ([0-9]+)/",)),
        ("[the number of a run is 5.]", "[the number of a run is 6.]", ("/of a run is ([0-9]+)/",)),
    ],
)
def test_the_narrowest_masks_are_found(
    recorded: str, received: str, options: tuple[str, ...]
) -> None:
    assert between({"text": recorded}, {"text": received}) == options
    mask = VolatileRules(options).masked_text
    assert mask(recorded) == mask(received)


@pytest.mark.parametrize(
    ("recorded", "received"),
    [
        ("Weather in Bern?", "Weather in Basel?"),
        ("one 1", "one 1 2"),
        ("1", "2"),
        ("-- 1", "-- 2"),
        ("x1 y1 z1", "q2 x1 r2"),
        ("a" * 20, ""),
        (1, 2),
        (1, "1"),
        (None, {"a": 1}),
    ],
)
def test_for_content_only_the_whole_field_helps(recorded: object, received: object) -> None:
    assert between({"a": [{"text": recorded}]}, {"a": [{"text": received}]}) == ("$.a[0].text",)


def test_a_field_in_several_elements_is_one_option() -> None:
    assert between([{"id": 1}, {"id": 2}], [{"id": 3}, {"id": 4}]) == ("$[*].id",)
    assert between({"a": 1, "x": 1}, {"b": 1, "x": 1}) == ("$.a", "$.b")


def test_masks_that_one_difference_needs_serve_the_others() -> None:
    recorded = {"a": "in /home/ann", "b": "in /home/ann", "c": "on 2026-11-26"}
    received = {"a": "in /home/bob", "b": "in /opt", "c": "on 2026-12-03"}
    assert between(recorded, received) == ("date", "path")


def test_the_model_is_not_masked() -> None:
    assert between({"model": "m-2026-11-26"}, {"model": "m-2026-12-03"}) == ("$.model",)


def test_lengths_of_arrays_have_no_option() -> None:
    assert between({"a": [1]}, {"a": [1, 2]}) == ()


def test_requests_that_differ_everywhere_get_no_suggestion() -> None:
    many = MOST_DIFFERENCES + 1
    assert between(list(range(many)), [-1] * many) == ()


def test_texts_that_are_long_and_different_are_not_compared_word_by_word() -> None:
    one, other = (" ".join(f"{letter}{at}" for at in range(2000)) for letter in ("aa", "bb"))
    assert between({"text": one}, {"text": other}) == ("$.text",)


def test_a_suggestion_has_no_secret() -> None:
    found = suggested(
        differing({"a": "key fake-0 1"}, {"a": "key fake-0 2"}),
        lambda text: text.replace("fake-0", "******"),
    )
    assert found == ("$.a",)
    assert suggested(differing({"fake-0": 1}, {"fake-0": 2}), lambda _: "***") == ()
