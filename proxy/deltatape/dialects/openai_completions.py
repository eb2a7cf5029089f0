"""OpenAI Completions, the predecessor of chat: a prompt in, text out, no tool calls.

Shapes: https://platform.openai.com/docs/api-reference/completions. Local servers still speak it.
"""

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

from deltatape.dialects._base import Hints, Traits
from deltatape.dialects._calls import CallEndCause
from deltatape.dialects._chat import MARKS, is_completion
from deltatape.dialects._delta_fast_path import AppendTexts, DeltaFastPath
from deltatape.dialects._json import Frame, as_object, get_array, get_index, get_object, get_str
from deltatape.dialects._reply import SENTINEL, DialectPolicy, ReplyDraft
from deltatape.dialects._request import make_message, read_body
from deltatape.model.reply import Channel, Reply
from deltatape.model.request_summary import NOTHING_ASKED, Message, RequestSummary
from deltatape.model.stream import Event

TERMINATOR = "finish_reason and [DONE]"


class OpenAICompletions:
    """The dialect. See `Dialect`."""

    name: ClassVar[str] = "openai-completions"
    traits: ClassVar[Traits] = Traits(
        provider="openai",
        delta_keys=frozenset({"text", "reasoning"}),
        closing_keys=frozenset({"finish_reason"}),
        late_usage=True,
    )

    def claims(self, hints: Hints) -> bool:
        return not hints.members.isdisjoint(MARKS) and any(map(is_completion, hints.first))

    def serves(self, path: str) -> bool:
        bare = path.rstrip("/")
        return bare.endswith("/completions") and not bare.endswith("/chat/completions")

    def read_request(self, body: bytes, path: str) -> RequestSummary:
        """See `Dialect.read_request`: the prompt is the only message."""
        del path
        found = read_body(body)
        if found is None:
            return NOTHING_ASKED
        request = found.value
        prompt = request.get("prompt")
        return RequestSummary(
            known=True,
            model=get_str(request, "model"),
            stream=request.get("stream") is True,
            tools=(),
            tool_choice=None,
            history=() if prompt is None else (_message(prompt),),
        )

    def reducer(self, request: RequestSummary) -> "CompletionReducer":
        return CompletionReducer(self.name, request)


class CompletionReducer:
    """Rebuilds a completion. See `Reducer`."""

    def __init__(self, name: str, request: RequestSummary) -> None:
        self._reply = ReplyDraft(name, TERMINATOR, request, DialectPolicy())
        self.fast_path = DeltaFastPath()

    def feed(self, event: Event, frame: Frame | None = None) -> None:
        reply = self._reply
        if event.data.strip() == SENTINEL:
            reply.terminal = reply.terminal or event
            return
        chunk = frame or reply.read(event)
        if chunk is None:
            return
        failed = reply.take_error(chunk, event)
        reply.usage = get_object(chunk, "usage") or reply.usage
        reply.model = reply.model or get_str(chunk, "model") or None
        choices = get_array(chunk, "choices")
        for place, value in enumerate(choices):
            choice = as_object(value)
            if choice is None:
                reply.note_unexpected("a choice is not an object", chunk, event)
            else:
                append = self._take(place, choice, event)
                if append is not None and len(choices) == 1 and not failed:
                    self.fast_path.learn(event, chunk, append, "text")

    def finish(self, *, cut: bool) -> Reply:
        del cut  # A finish reason or [DONE] tells more than the transport does.
        reply = self._reply
        done = reply.terminal is not None and reply.error is None
        return reply.build(CallEndCause.NORMAL, terminated=done or reply.finished)

    def _take(self, place: int, choice: Mapping[str, object], event: Event) -> AppendTexts | None:
        """Take a choice; return a function for more text, if it contained text and nothing else."""
        index = get_index(choice, "index")
        draft = self._reply.choice(place if index is None else index)
        text, reasoning = get_str(choice, "text") or "", get_str(choice, "reasoning") or ""
        draft.add_text(Channel.TEXT, text, event)
        draft.add_text(Channel.REASONING, reasoning, event)
        reason = get_str(choice, "finish_reason")
        if reason:
            draft.finish(reason, event)
        return None if reason or reasoning or not text else partial(draft.add_texts, Channel.TEXT)


def _message(prompt: object) -> Message:
    """Return the prompt as a message: a text, several texts, or tokens."""
    texts = prompt if isinstance(prompt, list) else [prompt]
    text = "\n".join(part for part in texts if isinstance(part, str))
    return make_message("user", text, prompt)
