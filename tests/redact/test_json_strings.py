import json

from deltatape.redact.json_strings import Leaf, leaves


def found(text: str, whole: frozenset[str] = frozenset()) -> list[Leaf]:
    return list(leaves(text, 0, len(text), whole))


def texts(text: str) -> list[tuple[str, str]]:
    return [(leaf.name, text[leaf.start : leaf.end]) for leaf in found(text)]


def test_every_string_value_is_a_leaf_with_the_nearest_key() -> None:
    text = r'{"a": "x\"y", "b": [1, "z", ["w"]], "c": {"d": null, "e": ""}}'
    assert texts(text) == [("a", r"x\"y"), ("b", "z"), ("b", "w"), ("e", "")]


def test_broken_text_gives_what_it_has() -> None:
    assert texts('{"a": "b') == [("a", "b")]
    assert texts('{"a": "b\\') == [("a", "b")]
    assert texts('}]"x" "y') == [("", "x"), ("", "y")]
    assert texts('{"a" "b" , "c": "d"') == [("a", "b"), ("c", "d")]
    assert texts("") == []


def test_nesting_beyond_the_limit_is_read_flat() -> None:
    deep = '{"a":' * 100 + '"x"' + "}" * 100 + ', "y"'
    assert ("a", "x") in texts(deep)


def test_fragments_of_one_text_share_a_channel_by_index() -> None:
    def delta(index: int, text: str) -> Leaf:
        chunk = {
            "choices": [{"delta": {"tool_calls": [{"function": {"a": text}, "index": index}]}}]
        }
        return found(json.dumps(chunk))[0]

    assert delta(0, "x").channel == delta(0, "y").channel
    assert delta(0, "x").channel != delta(1, "x").channel
    assert delta(0, "x").trail == delta(1, "x").trail


def test_events_of_another_type_or_output_are_other_channels() -> None:
    def event(kind: str, output: int) -> Leaf:
        return found(json.dumps({"type": kind, "output_index": output, "delta": "x"}))[-1]

    assert event("a", 0).channel == event("a", 0).channel
    assert len({event("a", 0).channel, event("b", 0).channel, event("a", 1).channel}) == 3


def test_elements_of_an_outermost_array_are_events() -> None:
    first, second = found('[{"text": "a"}, {"text": "b"}]')
    assert first.channel == second.channel
    first, second = found('{"m": [{"text": "a"}, {"text": "b"}]}')
    assert first.channel != second.channel
    assert [leaf.channel for leaf in found('["a"]')] == [((None, ()), 0)]


def test_objects_can_be_asked_for_as_a_whole() -> None:
    text = '{"input": {"a": "b"}, "c": [{"input": ["x"]}]}'
    whole = [
        text[leaf.start : leaf.end] for leaf in found(text, frozenset({"input"})) if leaf.whole
    ]
    assert whole == ['{"a": "b"}', '["x"]']


def test_the_role_of_an_object_is_known_beside_its_strings() -> None:
    leaf = found('{"name": "x", "role": "user"}')[0]
    assert leaf.node.marks == {"role": "user"}
