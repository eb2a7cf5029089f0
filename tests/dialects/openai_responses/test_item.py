import pytest

from deltatape.diagnose.rebuild import analyse
from deltatape.dialects._choice import ChoiceDraft, DialectPolicy
from deltatape.dialects.openai_responses.item import ItemDraft
from deltatape.model.reply import CallKind, CallStatus, ToolCall
from deltatape.model.request_summary import NOTHING_ASKED
from helpers.responses import (
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
    part,
    reply_to,
    say,
    sse,
)

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


def test_sources_that_differ_are_told_with_both_texts() -> None:
    events = (*OPENED, delta('{"a":'), done(function(WHOLE)), ended(function(WHOLE)))
    found = [finding for finding in findings(*events) if finding.code == "T015"]
    assert len(found) == 1
    assert found[0].severity == "error"
    assert found[0].message.startswith("call 0 (get): the arguments are ")
    assert "at response.output_item.done" in found[0].message


def test_the_same_json_in_another_spelling_is_no_difference() -> None:
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


def test_an_id_that_goes_missing_or_changes_is_told_once() -> None:
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


def test_a_call_without_call_id_is_told() -> None:
    item = function(WHOLE, call_id=None)
    assert codes(created(), added(item), delta(WHOLE), done(item), ended(item)) == ["T005"]


def test_a_name_that_comes_late_or_changes_is_told() -> None:
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


def test_a_type_that_is_not_on_the_wire_is_told() -> None:
    item = function(WHOLE, type="function_tool_call")
    events = (created(), added({**item, "arguments": ""}), delta(WHOLE), done(item), ended(item))
    assert codes(*events) == ["S006"]
    assert one(*events).arguments == WHOLE


def test_an_item_that_is_no_call_takes_no_arguments() -> None:
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
