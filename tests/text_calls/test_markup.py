from deltatape.text_calls import WrittenCall, find_calls


def only(body: str, schema: dict[str, object] | None = None) -> WrittenCall:
    (call,) = find_calls(f'<invoke name="f">{body}', {"f": schema})
    return call


def test_the_body_can_be_the_arguments_object() -> None:
    call = only('\n{"k": 1}\n</invoke>')
    assert (call.arguments, call.closed) == ('{"k": 1}', True)
    assert not only('{"k": 1').closed
    assert only('{"k": 1').arguments == '{"k": 1'
    assert only("{k}</invoke>").arguments == ""


def test_a_parameter_without_its_closing_tag_ends_at_the_next_tag() -> None:
    call = only('<parameter name="a">1<parameter name="b">2</invoke>')
    assert (call.arguments, call.closed) == ('{"a": "1", "b": "2"}', True)


def test_the_end_of_a_call_inside_a_closed_value_ends_nothing() -> None:
    call = only('<parameter name="a">x </invoke> y</parameter></invoke>')
    assert call.arguments == '{"a": "x </invoke> y"}'


def test_a_call_that_is_cut_off_has_what_came() -> None:
    number: dict[str, object] = {"properties": {"a": {"type": "integer"}}}
    for body, arguments in (
        ("", ""),
        ("<par", ""),
        ('<parameter name="a', ""),
        ('<parameter name="a">', '{"a": "'),
        ('<parameter name="a">x', '{"a": "x'),
        ('<parameter name="a" string="true">x', '{"a": "x'),
        ('<parameter name="a" string="false">1', '{"a": 1'),
        ('<parameter name="a">x</parameter></in', '{"a": "x"'),
    ):
        call = only(body)
        assert (call.arguments, call.closed) == (arguments, False)
        assert call.end == len('<invoke name="f">' + body)
    assert only('<parameter name="a">12', number).arguments == '{"a": 12'


def test_a_call_that_stops_ends_where_its_last_parameter_does() -> None:
    call = only('<parameter name="a">x</parameter> and then prose')
    assert (call.arguments, call.closed) == ('{"a": "x"', False)
    assert call.end == len('<invoke name="f"><parameter name="a">x</parameter>')


def test_the_tag_itself_can_tell_whether_the_value_is_a_string() -> None:
    call = only(
        '<parameter name="a" string="true">1</parameter><parameter name="b" string="false">[1]'
        '</parameter><parameter name="c" string="false">no</parameter></invoke>'
    )
    assert call.arguments == '{"a": "1", "b": [1], "c": "no"}'


def test_a_closing_tag_behind_which_the_call_does_not_go_on_is_text() -> None:
    call = only('<parameter name="a">x</parameter> y</parameter></invoke>')
    assert (call.arguments, call.closed) == ('{"a": "x</parameter> y"}', True)
    call = only('<parameter name="a">x</parameter> y</parameter>\n<parameter name="b">')
    assert call.arguments == '{"a": "x</parameter> y", "b": "'
    call = only('<parameter name="a">x</parameter> y </parameter> z <parameter name="b">')
    assert call.arguments == '{"a": "x"'
