"""The rules, one file each: a defect, how it is recognised, why it is bad, what to do about it.

A new rule is a file and a line here; one that looks only at what few exchanges have says so in
`subject`, and is then asked about those alone. The order is that of reports: the wire, the stream,
the calls, the application's own events, dead zones, the conversation.
"""

from deltatape.rules._base import Documented, Rule, RuleContext
from deltatape.rules._conversation import ConversationRule, SilenceRule, TurnRule
from deltatape.rules.a001_event_without_name import EventWithoutName
from deltatape.rules.a002_event_arguments_not_object import EventArgumentsNotObject
from deltatape.rules.a003_call_without_result import CallWithoutResult
from deltatape.rules.a004_missing_or_early_done import MissingOrEarlyDone
from deltatape.rules.a005_event_after_done import EventAfterDone
from deltatape.rules.a006_text_differs_from_done import TextDiffersFromDone
from deltatape.rules.c001_call_lost_by_app import CallLostByApp
from deltatape.rules.c002_arguments_changed_by_app import ArgumentsChangedByApp
from deltatape.rules.c003_identity_changed_by_app import IdentityChangedByApp
from deltatape.rules.c004_orphan_tool_result import OrphanToolResult
from deltatape.rules.c005_missing_tool_result import MissingToolResult
from deltatape.rules.c006_tool_loop import ToolLoop
from deltatape.rules.c007_tool_call_on_small_talk import ToolCallOnSmallTalk
from deltatape.rules.c008_retry_storm import RetryStorm
from deltatape.rules.c009_app_error_in_history import AppErrorInHistory
from deltatape.rules.c010_forced_tool_choice_loop import ForcedToolChoiceLoop
from deltatape.rules.c011_tools_removed_from_history import ToolsRemovedFromHistory
from deltatape.rules.c012_text_changed_by_app import TextChangedByApp
from deltatape.rules.c013_reasoning_lost_by_app import ReasoningLostByApp
from deltatape.rules.c014_foreign_message import ForeignMessage
from deltatape.rules.c015_results_swapped import ResultsSwapped
from deltatape.rules.c016_broken_call_executed import BrokenCallExecuted
from deltatape.rules.c017_result_not_serialised import ResultNotSerialised
from deltatape.rules.c018_request_repeated import RequestRepeated
from deltatape.rules.c019_user_message_repeated import UserMessageRepeated
from deltatape.rules.c020_answers_not_kept import AnswersNotKept
from deltatape.rules.c021_system_prompt_lost import SystemPromptLost
from deltatape.rules.c022_called_tool_withdrawn import CalledToolWithdrawn
from deltatape.rules.d001_stall import Stall
from deltatape.rules.d002_silent_answer import SilentAnswer
from deltatape.rules.d003_unanswered_tool_call import UnansweredToolCall
from deltatape.rules.d004_silence_after_tool_result import SilenceAfterToolResult
from deltatape.rules.d005_slow_client import SlowClient
from deltatape.rules.s001_no_terminal_event import NoTerminalEvent
from deltatape.rules.s002_finish_reason_mismatch import FinishReasonMismatch
from deltatape.rules.s003_finish_without_calls import FinishWithoutCalls
from deltatape.rules.s004_repeated_finish import RepeatedFinish
from deltatape.rules.s005_error_event import ErrorEvent
from deltatape.rules.s006_unexpected_event import UnexpectedEvent
from deltatape.rules.s007_sequence_gap import SequenceGap
from deltatape.rules.s008_empty_final_snapshot import EmptyFinalSnapshot
from deltatape.rules.s009_cut_by_limit import CutByLimit
from deltatape.rules.s010_call_after_finish import CallAfterFinish
from deltatape.rules.s011_other_model import OtherModel
from deltatape.rules.s012_impossible_usage import ImpossibleUsage
from deltatape.rules.s013_broken_structured_output import BrokenStructuredOutput
from deltatape.rules.s014_stray_tokens_in_content import StrayTokensInContent
from deltatape.rules.t001_empty_arguments import EmptyArguments
from deltatape.rules.t002_malformed_arguments import MalformedArguments
from deltatape.rules.t003_truncated_arguments import TruncatedArguments
from deltatape.rules.t004_missing_name import MissingName
from deltatape.rules.t005_missing_id import MissingId
from deltatape.rules.t006_arguments_not_an_object import ArgumentsNotAnObject
from deltatape.rules.t007_unknown_tool import UnknownTool
from deltatape.rules.t008_arguments_violate_schema import ArgumentsViolateSchema
from deltatape.rules.t009_repeated_name import RepeatedName
from deltatape.rules.t010_unstable_id import UnstableId
from deltatape.rules.t011_missing_index import MissingIndex
from deltatape.rules.t012_reused_index import ReusedIndex
from deltatape.rules.t013_index_not_zero_based import IndexNotZeroBased
from deltatape.rules.t014_repeated_arguments import RepeatedArguments
from deltatape.rules.t015_sources_disagree import SourcesDisagree
from deltatape.rules.t016_data_after_arguments import DataAfterArguments
from deltatape.rules.t017_empty_object_prefix import EmptyObjectPrefix
from deltatape.rules.t018_tool_call_in_text import ToolCallInText
from deltatape.rules.t019_unclosed_text_tool_call import UnclosedTextToolCall
from deltatape.rules.t020_duplicate_call import DuplicateCall
from deltatape.rules.t021_split_or_late_name import SplitOrLateName
from deltatape.rules.t022_double_escaped_arguments import DoubleEscapedArguments
from deltatape.rules.t023_arguments_in_text import ArgumentsInText
from deltatape.rules.t024_call_against_choice import CallAgainstChoice
from deltatape.rules.t025_choice_not_obeyed import ChoiceNotObeyed
from deltatape.rules.t026_id_reused import IdReused
from deltatape.rules.t027_repeated_delta import RepeatedDelta
from deltatape.rules.w001_unterminated_event import UnterminatedEvent
from deltatape.rules.w002_invalid_utf8 import InvalidUtf8
from deltatape.rules.w003_byte_order_mark import ByteOrderMark
from deltatape.rules.w004_event_not_json import EventNotJson
from deltatape.rules.w005_not_a_stream import NotAStream
from deltatape.rules.w006_stream_cut import StreamCut
from deltatape.rules.w007_buffered_burst import BufferedBurst
from deltatape.rules.w008_missing_event_line import MissingEventLine
from deltatape.rules.w009_bad_content_coding import BadContentCoding
from deltatape.rules.w010_corrupt_message import CorruptMessage
from deltatape.rules.x001_internal_error import InternalError
from deltatape.rules.x002_recorder_loss import RecorderLoss

RULES: tuple[Rule, ...] = (
    UnterminatedEvent(),
    InvalidUtf8(),
    ByteOrderMark(),
    EventNotJson(),
    NotAStream(),
    StreamCut(),
    BufferedBurst(),
    MissingEventLine(),
    BadContentCoding(),
    CorruptMessage(),
    NoTerminalEvent(),
    FinishReasonMismatch(),
    FinishWithoutCalls(),
    RepeatedFinish(),
    ErrorEvent(),
    UnexpectedEvent(),
    SequenceGap(),
    EmptyFinalSnapshot(),
    CutByLimit(),
    CallAfterFinish(),
    OtherModel(),
    ImpossibleUsage(),
    BrokenStructuredOutput(),
    StrayTokensInContent(),
    EmptyArguments(),
    MalformedArguments(),
    TruncatedArguments(),
    MissingName(),
    MissingId(),
    ArgumentsNotAnObject(),
    UnknownTool(),
    ArgumentsViolateSchema(),
    RepeatedName(),
    UnstableId(),
    MissingIndex(),
    ReusedIndex(),
    IndexNotZeroBased(),
    RepeatedArguments(),
    SourcesDisagree(),
    DataAfterArguments(),
    EmptyObjectPrefix(),
    ToolCallInText(),
    UnclosedTextToolCall(),
    DuplicateCall(),
    SplitOrLateName(),
    DoubleEscapedArguments(),
    ArgumentsInText(),
    CallAgainstChoice(),
    ChoiceNotObeyed(),
    RepeatedDelta(),
    EventWithoutName(),
    EventArgumentsNotObject(),
    CallWithoutResult(),
    MissingOrEarlyDone(),
    EventAfterDone(),
    TextDiffersFromDone(),
    Stall(),
    SilentAnswer(),
    SilenceAfterToolResult(),
    SlowClient(),
)
"""Rules about one exchange, in the order of reports."""

OF_THE_END = frozenset(
    {
        "W001",
        "W006",
        "S001",
        "S003",
        "S012",
        "S013",
        "T001",
        "T003",
        "T005",
        "T018",
        "T019",
        "T025",
        "A003",
        "A004",
        "D002",
    }
)
"""Codes of rules that judge what an ending left; silent while an exchange goes on."""

SILENCE_RULES: tuple[SilenceRule, ...] = (UnansweredToolCall(),)
"""Rules about replies that no later request repeats or answers."""

CONVERSATION_RULES: tuple[ConversationRule, ...] = (
    CallLostByApp(),
    ArgumentsChangedByApp(),
    IdentityChangedByApp(),
    ReasoningLostByApp(),
)
"""Rules about what the application made of a reply, in the order of reports."""

TURN_RULES: tuple[TurnRule, ...] = (
    OrphanToolResult(),
    MissingToolResult(),
    ToolLoop(),
    ToolCallOnSmallTalk(),
    RetryStorm(),
    AppErrorInHistory(),
    ForcedToolChoiceLoop(),
    ToolsRemovedFromHistory(),
    TextChangedByApp(),
    ForeignMessage(),
    ResultsSwapped(),
    BrokenCallExecuted(),
    ResultNotSerialised(),
    RequestRepeated(),
    UserMessageRepeated(),
    AnswersNotKept(),
    SystemPromptLost(),
    CalledToolWithdrawn(),
    IdReused(),
)
"""Rules about an exchange in its conversation, in the order of reports."""

INTERNAL_ERROR = InternalError()
"""Reports a rule that raised."""

RECORDER_LOSS = RecorderLoss()
"""Reports what the tape lacks of an exchange: told before what the `RULES` report."""

DOCUMENTED: tuple[Documented, ...] = (
    *RULES,
    *SILENCE_RULES,
    *CONVERSATION_RULES,
    *TURN_RULES,
    INTERNAL_ERROR,
    RECORDER_LOSS,
)
"""Everything that can be reported, in the order of reports."""

__all__ = [
    "CONVERSATION_RULES",
    "DOCUMENTED",
    "INTERNAL_ERROR",
    "RECORDER_LOSS",
    "RULES",
    "SILENCE_RULES",
    "TURN_RULES",
    "ConversationRule",
    "Documented",
    "Rule",
    "RuleContext",
    "SilenceRule",
    "TurnRule",
]
