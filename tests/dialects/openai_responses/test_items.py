import pytest

from deltatape.diagnose.rebuild import analyse
from deltatape.dialects._reply import ChoiceDraft, DialectPolicy
from deltatape.dialects.openai_responses.items import ArgumentsForm, ItemDraft, shape_of, tool_name
from deltatape.dialects.openai_responses.request import read_request
from deltatape.model.reply import CallKind, CallStatus, ToolCall
from deltatape.model.request_summary import NOTHING_ASKED
from helpers.responses import (
    Object,
    added,
    call,
    codes,
    created,
    delta,
    done,
    ended,
    exchange,
    findings,
    function,
    message,
    numbered,
    part,
    reply_to,
    say,
    sse,
)


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("function_call", CallKind.FUNCTION),
        ("computer_call", CallKind.BUILT_IN),
        ("local_shell_call", CallKind.BUILT_IN),
        ("shell_call", CallKind.BUILT_IN),
        ("apply_patch_call", CallKind.BUILT_IN),
    ],
)
def test_the_client_runs_what_it_must_send_an_output_for(kind: str, found: CallKind) -> None:
    shape = shape_of({"type": kind}, NOTHING_ASKED)
    assert shape
    assert shape.kind is found


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("web_search_call", "web_search"),
        ("code_interpreter_call", "code_interpreter"),
        ("program", "program"),
        ("brand_new_call", "brand_new"),
    ],
)
def test_the_provider_runs_its_own_tools_and_those_nobody_knows(kind: str, name: str) -> None:
    shape = shape_of({"type": kind}, NOTHING_ASKED)
    assert shape
    assert (shape.kind, shape.name) == (CallKind.SERVER, name)


@pytest.mark.parametrize("item", [{"type": "message"}, {"type": "reasoning"}, {"type": 1}, {}])
def test_other_items_are_no_calls(item: dict[str, object]) -> None:
    assert shape_of(item, NOTHING_ASKED) is None


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ({"type": "mcp_call"}, CallKind.MCP),
        ({"type": "mcp_approval_request"}, CallKind.MCP),
        ({"type": "shell_call", "environment": {"type": "local"}}, CallKind.BUILT_IN),
        ({"type": "shell_call", "environment": None}, CallKind.BUILT_IN),
        ({"type": "shell_call", "environment": {"type": "container_reference"}}, CallKind.SERVER),
        ({"type": "tool_search_call", "execution": "server"}, CallKind.SERVER),
        ({"type": "tool_search_call", "execution": "client"}, CallKind.BUILT_IN),
    ],
)
def test_where_a_call_runs_may_stand_in_the_item(item: dict[str, object], kind: CallKind) -> None:
    shape = shape_of(item, NOTHING_ASKED)
    assert shape
    assert shape.kind is kind


def test_custom_calls_that_nobody_offered_are_the_search_on_x() -> None:
    item = {"type": "custom_tool_call", "name": "x_keyword_search"}
    asked = read_request(b'{"tools": [{"type": "x_search"}]}')
    offered = read_request(
        b'{"tools": [{"type": "x_search"}, {"type": "custom", "name": "x_keyword_search"}]}'
    )
    found = [shape_of(item, each) for each in (asked, offered, NOTHING_ASKED)]
    kinds = [(shape.kind, shape.form) for shape in found if shape]
    custom = (CallKind.CUSTOM, ArgumentsForm.TEXT)
    assert kinds == [(CallKind.SERVER, ArgumentsForm.FREE), custom, custom]


def test_a_built_in_tool_has_one_name() -> None:
    assert tool_name("computer_use_preview") == "computer"
    assert tool_name("shell") == "shell"


def test_a_computer_call_has_one_action_or_several() -> None:
    several = shape_of({"type": "computer_call", "actions": []}, NOTHING_ASKED)
    assert several
    assert (several.kind, several.field, several.form) == (
        CallKind.BUILT_IN,
        "actions",
        ArgumentsForm.FREE,
    )
    one = shape_of({"type": "computer_call", "action": {}, "actions": []}, NOTHING_ASKED)
    assert one
    assert one.field == "action"


WHOLE = '{"a":1}'
OPENED = (created(), added(function()))


def one(*events: object, request: dict[str, object] | None = None) -> ToolCall:
    calls = reply_to(*events, request=request).tool_calls
    assert len(calls) == 1
    return calls[0]


def test_a_healthy_call_is_told_alike_five_times() -> None:
    events = (created(), *call(), ended(function(WHOLE)))
    found = one(*events)
    assert (found.id, found.name, found.arguments) == ("call_1", "get", WHOLE)
    assert (found.status, found.kind, found.wire_index) == ("complete", "function", 0)
    assert (found.ids, found.arguments_raw, len(found.fragments)) == (("call_1",), WHOLE, 2)
    assert codes(*events) == []


@pytest.mark.parametrize(
    ("rest", "arguments"),
    [
        ([delta("1"), part("function_call_arguments.done", arguments="2")], "2"),
        (
            [delta("1"), part("function_call_arguments.done", arguments="2"), ended(function("3"))],
            "3",
        ),
        ([delta("1"), done(function("4")), ended(function("3"))], "4"),
        ([delta("1"), done(function("")), ended(function(""))], "1"),
        ([delta("1"), done(function(None)), ended(function(None))], "1"),
        ([done(function("4")), ended(function("3"))], "4"),
    ],
)
def test_the_source_of_most_authority_counts(rest: list[object], arguments: str) -> None:
    assert one(*OPENED, *rest).arguments == arguments


def test_sources_that_differ_are_reported_with_both_texts() -> None:
    events = (*OPENED, delta('{"a":'), done(function(WHOLE)), ended(function(WHOLE)))
    found = [finding for finding in findings(*events) if finding.code == "T015"]
    assert len(found) == 1
    assert found[0].severity == "error"
    assert found[0].message.startswith("call 0 (get): the arguments are ")
    assert "at response.output_item.done" in found[0].message


def test_the_same_json_in_another_spelling_is_not_a_difference() -> None:
    again = function('{ "a" : 1 }')
    assert codes(*OPENED, delta(WHOLE), done(again), ended(again)) == []


def test_the_input_of_custom_tools_is_text_to_the_letter() -> None:
    item = {"id": "ctc_1", "type": "custom_tool_call", "call_id": "c", "name": "sql"}
    piece = part("custom_tool_call_input.delta", 0, "ctc_1", delta="{ }")
    events = (created(), added({**item, "input": ""}), piece, done({**item, "input": "{}"}))
    found = one(*events, ended({**item, "input": "{}"}))
    assert (found.kind, found.arguments, found.status) == (CallKind.CUSTOM, "{}", "complete")
    assert found.repairs == ("T015",)
    assert one(*events).status is CallStatus.COMPLETE
    assert one(*events[:3]).status is CallStatus.TRUNCATED


def test_arguments_that_did_not_stream_are_one_fragment() -> None:
    found = one(*OPENED, done(function(WHOLE)), ended(function(WHOLE)))
    assert [(piece.text, piece.event) for piece in found.fragments] == [(WHOLE, 2)]


def test_full_arguments_at_the_beginning_count_only_if_nothing_follows() -> None:
    early = (created(), added(function(WHOLE)))
    assert one(*early).arguments == WHOLE
    assert one(*early).status is CallStatus.TRUNCATED
    assert one(*early, delta('{"b":2}'), done(function('{"b":2}'))).arguments == '{"b":2}'


def test_a_call_that_is_done_is_whole_whatever_ends_the_stream() -> None:
    assert one(created(), *call()).status is CallStatus.COMPLETE
    assert one(created(), *call()[:-1]).status is CallStatus.TRUNCATED


def test_a_call_that_is_done_because_a_limit_cut_it_is_not_whole() -> None:
    cut = function('{"a"', status="incomplete")
    events = (*OPENED, delta('{"a":1'), done(cut), ended(cut, status="incomplete"))
    assert one(*events).status is CallStatus.TRUNCATED
    assert one(*events).arguments == '{"a":1'
    assert "T015" not in codes(*events)


def test_an_item_that_the_final_response_calls_completed_is_whole() -> None:
    item = function(WHOLE, status="completed")
    assert one(*OPENED, delta(WHOLE), ended(item, status="incomplete")).status == "complete"


def test_no_arguments_are_judged_by_the_schema() -> None:
    events = (*OPENED, done(function("")), ended(function("")))
    tool: dict[str, object] = {"type": "function", "name": "get", "parameters": {}}
    assert one(*events, request={"tools": [tool]}).status is CallStatus.EMPTY_OK
    needy = {**tool, "parameters": {"required": ["a"]}}
    assert one(*events, request={"tools": [needy]}).status is CallStatus.EMPTY_SUSPECT


def test_arguments_that_are_an_object_are_kept_as_they_stand() -> None:
    events = (*OPENED, done(function({"b": 1, "a": 2})), ended(function({"b": 1, "a": 2})))
    found = one(*events)
    assert (found.arguments, found.status) == ('{"b": 1, "a": 2}', "complete")
    assert found.repairs == ("T006",)


@pytest.mark.parametrize(
    ("item", "name", "arguments"),
    [
        ({"type": "local_shell_call", "action": {"command": ["ls"]}}, "local_shell", "command"),
        ({"type": "apply_patch_call", "operation": {"path": "x"}}, "apply_patch", "path"),
        ({"type": "computer_call", "action": {"type": "click"}}, "computer", "click"),
    ],
)
def test_the_client_runs_local_tools(item: dict[str, object], name: str, arguments: str) -> None:
    item = {"id": "x_1", "call_id": "c", "status": "completed", **item}
    events = (created(), added({**item, "status": "in_progress"}), done(item), ended(item))
    reply = reply_to(*events)
    (found,) = reply.server_calls
    assert (found.id, found.name, found.status) == ("c", name, "complete")
    assert (found.kind, reply.tool_calls) == (CallKind.BUILT_IN, ())
    assert arguments in found.arguments
    assert codes(*events) == []


def test_the_provider_runs_its_own_tools_and_mcp() -> None:
    code = {"id": "ci_1", "type": "code_interpreter_call", "code": "x = [1", "status": "completed"}
    search = {"id": "fs_1", "type": "file_search_call", "queries": ["q"]}
    mcp = {"id": "mcp_1", "type": "mcp_call", "name": "roll", "arguments": "{}"}
    events = [
        created(),
        added({**code, "code": ""}),
        part("code_interpreter_call_code.delta", 0, "ci_1", delta="x = [1"),
        part("code_interpreter_call_code.done", 0, "ci_1", code="x = [1"),
        done(code),
        added({**search, "queries": []}, 1),
        done(search, 1),
        added({**mcp, "arguments": ""}, 2),
        part("mcp_call_arguments.delta", 2, "mcp_1", delta="{}"),
        part("mcp_call_arguments.done", 2, "mcp_1", arguments="{}"),
        done(mcp, 2),
    ]
    reply = reply_to(*events, ended(code, search, mcp))
    assert reply.tool_calls == ()
    told = [(each.kind, each.id, each.name, each.arguments) for each in reply.server_calls]
    assert told == [
        ("server", "ci_1", "code_interpreter", "x = [1"),
        ("server", "fs_1", "file_search", '["q"]'),
        ("mcp", "mcp_1", "roll", "{}"),
    ]
    assert {each.status for each in reply.server_calls} == {"complete"}
    assert reply.observations == ()
    cut = reply_to(*events[:3])
    assert [(each.arguments, each.status) for each in cut.server_calls] == [("x = [1", "truncated")]


def test_an_id_that_goes_missing_or_changes_is_reported_once() -> None:
    bare = function(WHOLE)
    del bare["id"]
    assert codes(*OPENED, delta(WHOLE), done(bare), ended(bare)) == ["T010"]
    events = (*OPENED, delta('{"a"', item_id="x2"), delta(":1}", item_id="x3"))
    item = function(WHOLE, id="x4")
    assert codes(*events, done(item), ended(item)) == ["T010"]


def test_an_id_that_only_the_final_response_changes_is_fine() -> None:
    assert codes(created(), *call(), ended(function(WHOLE, id="fc_9"))) == []


def test_the_call_id_of_the_item_that_is_done_is_the_one_to_answer() -> None:
    item = function(WHOLE, call_id="call_9")
    found = one(*OPENED, delta(WHOLE), done(item), ended({**item, "call_id": "call_8"}))
    assert found.ids == ("call_9", "call_1", "call_8")
    assert found.repairs == ("T010",)


def test_a_call_without_call_id_is_ids_and_arguments() -> None:
    item = function(WHOLE, call_id=None)
    assert codes(created(), added(item), delta(WHOLE), done(item), ended(item)) == ["T005"]


def test_a_name_that_comes_late_or_changes_is_ids_and_arguments() -> None:
    late = (created(), added(function(name="")), delta(WHOLE), done(function(WHOLE)))
    assert one(*late, ended(function(WHOLE))).repairs == ("T021",)
    other = function(WHOLE, name="put")
    found = one(*OPENED, delta(WHOLE), done(other), ended(function(WHOLE)))
    assert (found.name, found.repairs) == ("put", ("T015",))


def test_the_end_of_the_arguments_may_bring_the_name() -> None:
    end = part("function_call_arguments.done", arguments=WHOLE, name="get")
    assert one(created(), added(function(name=None)), end, ended()).name == "get"
    assert one(*OPENED, {**end, "name": "put"}, ended()).name == "get"


def test_a_call_of_which_only_pieces_came_is_an_orphan() -> None:
    assert one(created(), delta("{}"), ended()).status is CallStatus.ORPHAN


def test_a_type_that_is_not_on_the_wire_is_ids_and_arguments() -> None:
    item = function(WHOLE, type="function_tool_call")
    events = (created(), added({**item, "arguments": ""}), delta(WHOLE), done(item), ended(item))
    assert codes(*events) == ["S006"]
    assert one(*events).arguments == WHOLE


def test_an_item_that_is_not_a_call_takes_no_arguments() -> None:
    event = analyse(exchange(sse(created()))).stream.events[0]
    policy = DialectPolicy()
    item = ItemDraft("message", 0, ChoiceDraft(0, NOTHING_ASKED, policy), NOTHING_ASKED)
    item.add_arguments([("{}", event)])
    item.end_arguments("{}", "get", event)
    assert item.settle(resumed=False) == []
    assert item.call_ids == {}


MESSAGE_ADDED = (created(), added(message()))


def texts(*events: object) -> tuple[str, str, str]:
    reply = reply_to(*events)
    choice = reply.choices[0]
    return choice.text, choice.reasoning, choice.refusal


def test_pieces_make_the_text_and_the_wholes_confirm_it() -> None:
    whole = message("Hello", status="completed")
    events = [
        *MESSAGE_ADDED,
        say("Hel"),
        say("lo"),
        part("output_text.done", 0, "msg_1", content_index=0, text="Hello"),
        part("content_part.done", 0, "msg_1", part={"type": "output_text", "text": "Hello"}),
        done(whole),
        ended(whole),
    ]
    assert texts(*events) == ("Hello", "", "")
    assert codes(*events) == []
    assert [piece.text for piece in reply_to(*events).choices[0].pieces] == ["Hel", "lo"]


@pytest.mark.parametrize(
    "rest",
    [
        (part("output_text.done", 0, "msg_1", text="Hello"),),
        (part("content_part.done", 0, "msg_1", part={"type": "output_text", "text": "Hello"}),),
        (done(message("Hello")),),
        (ended(message("Hello")),),
        (done(message("Hello")), ended(message("Hello"))),
    ],
)
def test_a_text_that_did_not_stream_is_taken_from_what_tells_it(rest: tuple[object, ...]) -> None:
    assert texts(*MESSAGE_ADDED, *rest) == ("Hello", "", "")


def test_the_item_that_is_done_counts_more_than_the_final_response_and_the_pieces() -> None:
    events = (*MESSAGE_ADDED, say("Help"), done(message("Hello")), ended(message("Hell")))
    assert texts(*events) == ("Hello", "", "")
    assert codes(*events) == ["T015"]


def test_the_rest_of_a_text_is_added_to_its_pieces() -> None:
    events = (*MESSAGE_ADDED, say("Hel"), done(message("Hello")), ended(message("Hello")))
    pieces = reply_to(*events).choices[0].pieces
    assert [piece.text for piece in pieces] == ["Hel", "lo"]


def test_an_empty_whole_replaces_nothing() -> None:
    events = (*MESSAGE_ADDED, say("Hello"), done(message()), ended(message()))
    assert texts(*events) == ("Hello", "", "")
    assert codes(*events) == ["T015"]


def test_parts_are_compared_together() -> None:
    events = (*MESSAGE_ADDED, say("Hel", content=1), say("lo", content=3), done(message("Hello")))
    assert texts(*events, ended(message("Hello"))) == ("Hello", "", "")
    assert codes(*events, ended(message("Hello"))) == []


def test_a_cut_message_may_be_longer_in_its_pieces() -> None:
    cut = message("Hel", status="incomplete")
    events = (*MESSAGE_ADDED, say("Hello"), done(cut), ended(cut, status="incomplete"))
    assert "T015" not in codes(*events)


def test_surrogates_cut_apart_are_one_character() -> None:
    whole = message("\U0001f600")
    events = (*MESSAGE_ADDED, say("\ud83d"), say("\ude00"), done(whole), ended(whole))
    assert texts(*events) == ("\U0001f600", "", "")
    assert codes(*events) == []


def test_refusals_and_both_kinds_of_reasoning_have_their_channel() -> None:
    thought = {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "Sum. "}, {"type": "new"}, 3],
        "content": [{"type": "reasoning_text", "text": "Think."}],
    }
    refusal = {**message(), "content": [{"type": "refusal", "refusal": "No."}]}
    events = [
        created(),
        added({"id": "rs_1", "type": "reasoning", "summary": []}),
        part("reasoning_summary_text.delta", 0, "rs_1", summary_index=0, delta="Sum. "),
        part("reasoning_summary_text.done", 0, "rs_1", summary_index=0, text="Sum. "),
        part("reasoning_summary_part.done", 0, "rs_1", part={"type": "summary_text", "text": ""}),
        part("reasoning_text.delta", 0, "rs_1", content_index=0, delta="Think."),
        part("content_part.done", 0, "rs_1", part={"type": "reasoning_text", "text": "Think."}),
        done(thought),
        added(message(), 1),
        part("refusal.delta", 1, "msg_1", delta="No."),
        part("refusal.done", 1, "msg_1", refusal="No."),
        part("content_part.done", 1, "msg_1", part={"type": "refusal", "refusal": "No."}),
        part("content_part.done", 1, "msg_1", part={"type": "new"}),
        part("content_part.done", 1, "msg_1"),
        done(refusal, 1),
        ended(thought, refusal),
    ]
    assert texts(*events) == ("", "Sum. Think.", "No.")
    assert [code for code in codes(*events) if code != "D002"] == []


def test_several_messages_and_parts_follow_each_other() -> None:
    one, two = message("a", "b"), message("c", item_id="msg_2")
    assert texts(created(), ended(one, two)) == ("abc", "", "")


def ids_and_arguments(*events: object) -> list[tuple[str | None, str]]:
    return [(call.id, call.arguments) for call in reply_to(*events).tool_calls]


def test_two_calls_are_kept_apart_by_their_place() -> None:
    events = [
        created(),
        added(function(number=1), 0),
        added(function(number=2), 1),
        delta('{"a":', 0),
        delta('{"b":', 1, "fc_2"),
        delta("1}", 0),
        delta("2}", 1, "fc_2"),
        done(function(WHOLE, 1), 0),
        done(function('{"b":2}', 2), 1),
        ended(function(WHOLE, 1), function('{"b":2}', 2)),
    ]
    assert ids_and_arguments(*events) == [("call_1", WHOLE), ("call_2", '{"b":2}')]
    assert codes(*events) == []


def test_a_place_used_twice_is_reported_and_ids_decide() -> None:
    events = [
        created(),
        added(function(number=1)),
        added(function(number=2)),
        delta('{"a":'),
        delta('{"b":2}', item_id="fc_2"),
        delta("1}"),
        done(function(WHOLE, 1)),
        done(function('{"b":2}', 2)),
        ended(function(WHOLE, 1), function('{"b":2}', 2)),
    ]
    assert ids_and_arguments(*events) == [("call_1", WHOLE), ("call_2", '{"b":2}')]
    assert codes(*events) == ["T012"]


def test_a_message_and_a_call_may_share_a_place() -> None:
    events = [
        created(),
        added(message()),
        added(function()),
        part("output_text.delta", 0, None, delta="Hi"),
        part("function_call_arguments.delta", 0, None, delta=WHOLE),
        done(function(WHOLE)),
        done(message("Hi")),
        ended(message("Hi"), function(WHOLE)),
    ]
    assert ids_and_arguments(*events) == [("call_1", WHOLE)]
    assert reply_to(*events).text == "Hi"
    assert codes(*events) == ["T012"]


def test_one_id_for_all_items_leaves_the_place_to_decide() -> None:
    one, two = function(id="fc"), function(number=2, id="fc")
    events = [
        created(),
        added(one, 0),
        added(two, 1),
        delta(WHOLE, 0, "fc"),
        delta('{"b":2}', 1, "fc"),
        done({**one, "arguments": WHOLE}, 0),
        done({**two, "arguments": '{"b":2}'}, 1),
    ]
    assert ids_and_arguments(*events) == [("call_1", WHOLE), ("call_2", '{"b":2}')]


def test_wrong_places_of_pieces_are_reported_and_the_id_decides() -> None:
    events = [created(), *call(), added(function(number=2), 1), delta('{"b":2}', 0, "fc_2")]
    assert ids_and_arguments(*events)[1] == ("call_2", '{"b":2}')
    assert codes(*events, done(function('{"b":2}', 2), 1))[-1] == "S006"


def test_new_ids_in_every_event_leave_the_place_to_decide() -> None:
    events = [
        created(),
        added(function(id="a")),
        delta('{"a":', item_id="b"),
        delta("1}", item_id="c"),
        done(function(WHOLE, id="d")),
        ended(function(WHOLE, id="e")),
    ]
    assert ids_and_arguments(*events) == [("call_1", WHOLE)]
    assert codes(*events) == ["T010"]


def test_pieces_for_an_item_that_is_done_still_belong_to_it() -> None:
    late = delta("x", item_id=None)
    assert ids_and_arguments(created(), *call(), late) == [("call_1", WHOLE)]


def test_an_item_without_place_is_found_by_its_id() -> None:
    events = [created(), added(function(), None), delta(WHOLE, None), done(function(WHOLE), None)]
    assert ids_and_arguments(*events) == [("call_1", WHOLE)]
    assert codes(*events, ended(function(WHOLE))) == ["S006"]


def test_an_item_added_or_done_twice_is_one_item() -> None:
    first, *rest = call()
    events = [created(), first, first, *rest, rest[-1], ended(function(WHOLE))]
    assert ids_and_arguments(*events) == [("call_1", WHOLE)]
    assert codes(*events) == ["S006", "S006"]


@pytest.mark.parametrize("left_out", ["response.output_item.added", "response.output_item.done"])
def test_an_item_that_is_not_announced_or_not_ended_is_ids_and_arguments(left_out: str) -> None:
    events = [event for event in call() if event["type"] != left_out]
    assert ids_and_arguments(created(), *events, ended(function(WHOLE))) == [("call_1", WHOLE)]
    assert codes(created(), *events, ended(function(WHOLE))) == ["S006"]


def test_a_whole_item_and_no_more_is_ids_and_arguments() -> None:
    assert codes(created(), done(function(WHOLE)), ended(function(WHOLE))) == ["S006"]
    assert codes(created(), ended(function(WHOLE))) == ["S006"]
    assert codes(created(), ended(message("Hi"))) == []


def test_a_second_whole_item_at_the_same_place_is_another_call() -> None:
    events = [created(), *call(), done(function("{}", 2))]
    assert ids_and_arguments(*events) == [("call_1", WHOLE), ("call_2", "{}")]


def test_pieces_without_any_item_open_one() -> None:
    assert reply_to(created(), say("Hi"), say("!"), ended()).text == "Hi!"
    assert ids_and_arguments(created(), delta("{"), delta("}"), ended()) == [(None, "{}")]


def test_a_call_that_the_final_response_leaves_out_is_ids_and_arguments() -> None:
    other = message("Hi")
    events = [created(), *call(), added(message(), 1), say("Hi", 1), done(other, 1)]
    assert codes(*events, ended(other)) == ["T015"]
    assert codes(*events, ended()) == ["S008"]


def test_items_at_other_places_of_the_final_response_are_found_by_type() -> None:
    one = message("a", item_id="new_1")
    events = [
        created(),
        added({"id": "rs_1", "type": "reasoning"}, 0),
        done({"id": "rs_1", "type": "reasoning"}, 0),
        added(message(), 1),
        say("a", 1),
        done(message("a"), 1),
    ]
    assert reply_to(*events, ended(one)).text == "a"
    assert reply_to(*events, ended(one, message("b"))).text == "ab"


def test_a_place_taken_by_something_else_opens_an_item() -> None:
    events = [created(), added(message()), done(function(WHOLE))]
    assert ids_and_arguments(*events) == [("call_1", WHOLE)]


def test_what_is_no_item_is_ids_and_arguments() -> None:
    assert codes(created(), added(None), say("Hi"), done("x"), ended(3)).count("S006") == 3


def test_a_resumed_stream_may_begin_in_the_middle() -> None:
    rest = [*call()[2:], ended(function(WHOLE))]
    events = numbered(*rest, first=4)
    assert ids_and_arguments(*events) == [("call_1", WHOLE)]
    assert codes(*events) == []
    assert reply_to(*events).tool_calls[0].arguments_raw == '":1}'


def test_a_resumed_text_is_whole_at_its_end() -> None:
    events = numbered(say("lo"), done(message("Hello")), ended(message("Hello")), first=5)
    assert reply_to(*events).text == "Hello"
    assert codes(*events) == []


def test_a_resumed_stream_may_list_what_came_before() -> None:
    events = numbered(ended(function(WHOLE)), first=9)
    assert ids_and_arguments(*events) == [("call_1", WHOLE)]
    assert codes(*events) == []


def test_no_more_than_the_latest_of_many_items_with_one_name_are_looked_at() -> None:
    many = [added(function(number=at)) for at in range(40)]
    assert len(ids_and_arguments(created(), *many, delta(WHOLE, item_id="fc_39"))) == 40


def nowhere(*events: Object) -> list[Object]:
    """`events` without places and without internal ids."""
    for event in events:
        event.pop("output_index", None)
        event.pop("item_id", None)
    return list(events)


def test_pieces_without_place_and_id_belong_to_the_newest_item_that_is_not_done() -> None:
    items = [{**function(each, 1 + at), "id": None} for at, each in enumerate((WHOLE, '{"b":2}'))]
    events = []
    for item in items:
        arguments = str(item["arguments"])
        pieces = [delta(arguments[:3]), delta(arguments[3:])]
        events += nowhere(added({**item, "arguments": ""}), *pieces, done(item))
    events = [created(), *events, ended(*items)]
    assert ids_and_arguments(*events) == [("call_1", WHOLE), ("call_2", '{"b":2}')]
    assert codes(*events) == ["S006"]


def test_a_whole_text_without_place_and_id_is_that_of_its_pieces() -> None:
    text = message("Hello", item_id="")
    frames = nowhere(added(message(item_id="")), say("Hel"), say("lo"), done(text))
    assert reply_to(created(), *frames, ended(text)).text == "Hello"


def test_pieces_at_the_place_of_another_tool_that_is_done_open_a_call() -> None:
    remote = {"id": "mcp_1", "type": "mcp_call", "name": "ask", "arguments": "{}"}
    frames = [done(remote), delta(WHOLE), done(function(WHOLE))]
    reply = reply_to(created(), *frames, ended(remote, function(WHOLE)))
    assert [call.id for call in reply.tool_calls] == ["call_1"]
    assert [call.arguments for call in reply.server_calls] == ["{}"]


def test_texts_of_items_that_mix_stand_one_after_the_other() -> None:
    other = part("output_text.delta", 1, "msg_2", content_index=0)
    opened = [added(message(), 0), added(message(item_id="msg_2"), 1)]
    mixed = [say("Hel"), {**other, "delta": "wor"}, say("lo "), {**other, "delta": "ld"}]
    assert reply_to(created(), *opened, *mixed).text == "Hello world"


def test_a_call_that_is_sent_again_and_not_listed_is_one_call() -> None:
    again = [added(function(WHOLE, 1, id="fc_9"), 1), done(function(WHOLE, 1, id="fc_9"), 1)]
    events = [created(), *call(), *again, ended(function(WHOLE))]
    assert ids_and_arguments(*events) == [("call_1", WHOLE)]
    assert codes(*events) == ["T020"]


def test_one_id_for_two_calls_is_ids_and_arguments() -> None:
    second = function('{"b":2}', 2, call_id="call_1")
    frames = [added({**second, "arguments": ""}, 1), done(second, 1)]
    events = [created(), *call(), *frames, ended(function(WHOLE), second)]
    assert ids_and_arguments(*events) == [("call_1", WHOLE), ("call_1", '{"b":2}')]
    assert codes(*events) == ["T010"]


@pytest.mark.parametrize("identifier", ["msg_1", None])
def test_a_text_whose_item_was_not_announced_is_kept_and_noted(identifier: str | None) -> None:
    said = part("output_text.delta", 0, "msg_1", delta="Hi")
    said = {**said, "item_id": identifier}
    reply = reply_to(created(), said)
    assert (reply.text, reply.tool_calls) == ("Hi", ())
    assert "S006" in codes(created(), said)
