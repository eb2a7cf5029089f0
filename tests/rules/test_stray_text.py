import pytest

from deltatape.model.exchange import Exchange
from deltatape.model.finding import Blame, Confidence, Severity
from helpers.chat import choice
from helpers.exchanges import (
    FINISH_TEXT,
    asks,
    codes,
    found,
    from_bytes,
    one,
    pasted,
    user,
)

PAGE = (
    "<!DOCTYPE html>\n<html><head><title>502 Bad\n Gateway</title></head><body>nginx</body></html>"
)
GARBLED = "Le café, l'été, la crème".encode().decode("latin-1")
QUOTES = "It\u2019s \u201cfine\u2019s"


def answer(*pieces: str, question: str = "How are you?") -> Exchange:
    request = asks(user(question))
    return pasted(*(choice({"content": one}) for one in pieces), FINISH_TEXT, request=request)


@pytest.mark.parametrize(
    "token",
    [
        "<|im_end|>",
        "<|eot_id|>",
        "<|endoftext|>",
        "<|return|>",
        "<end_of_turn>",
        "</s>",
        "<eos>",
        "[/INST]",
        "<\uff5cend\u2581of\u2581sentence\uff5c>",
    ],
)
def test_a_token_at_the_end_is_likely_the_servers(token: str) -> None:
    finding = one(answer("Fine.", f"{token}\n"), "S014")
    assert finding.message == (
        f"the answer text contains the token {token!r}, at the end of a turn"
    )
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.UPSTREAM)
    assert (finding.confidence, finding.event) == (Confidence.LIKELY, 1)
    assert len(finding.excluded) == 2


def test_a_model_that_goes_on_with_the_users_part_is_likely_not_stopped() -> None:
    finding = one(answer("Fine.<|im_end|>\n<|im_start|>user\nThanks!"), "S014")
    assert finding.confidence is Confidence.LIKELY


@pytest.mark.parametrize(
    "text", ["Fine! <|im_end|>", "Paris<|im_end|>", "- Fine\n<|im_end|>", "</s>"]
)
def test_a_token_after_what_is_complete_ends_a_turn(text: str) -> None:
    assert one(answer(text), "S014").confidence is Confidence.LIKELY


@pytest.mark.parametrize(
    "text",
    [
        "A turn ends with <|im_end|>",
        "GPT-2 has only one of these: <|endoftext|>",
        "Marker:<|im_end|>",
        "\u56de\u5408\u7684\u7ed3\u675f\u662f<|im_end|>",
        "A sequence ends with </s>",
    ],
)
def test_a_token_that_a_sentence_leads_up_to_may_be_what_it_speaks_of(text: str) -> None:
    finding = one(answer(text, question="Which marker closes it?"), "S014")
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("I look it up.\n</think>\n\nIt is sunny.", "'</think>', which ends reasoning"),
        ("<|channel|>analysis<|message|>I look it up.", "the token '<|channel|>'"),
        ("It is sunny.<|start|>assistant", "the token '<|start|>'"),
    ],
)
def test_reasoning_that_the_server_leaves_in_the_text_is_reported(text: str, what: str) -> None:
    finding = one(answer(text), "S014")
    assert what in finding.message
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)


@pytest.mark.parametrize(
    "text", ["<think>I look it up.</think>It is sunny.", "Reasoning ends with `</think>`."]
)
def test_reasoning_in_tags_of_its_own_is_no_stray_text(text: str) -> None:
    assert not found(answer(text), "S014")


def test_a_token_in_the_middle_is_possibly_the_models_own() -> None:
    finding = one(answer("Fine<|im_end|> and well."), "S014")
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)


@pytest.mark.parametrize(
    "text",
    [
        "The token `<|im_end|>` ends it.",
        "```\n<|im_start|>user\nHi<|im_end|>\n```",
        'It is called "<|im_end|>".',
        "A <s>word</s>",
        "Use <|box|> or |x|.",
        "a < b and </s> in the middle of it",
    ],
)
def test_what_is_quoted_or_code_or_markup_is_fine(text: str) -> None:
    assert not found(answer(text), "S014")


def test_what_the_request_has_or_asks_about_is_fine() -> None:
    assert not found(answer("Fine.<|im_end|>", question="What is <|im_end|>?"), "S014")
    told = answer("It is <|im_end|>, I think.", question="Which ChatML token ends a message?")
    assert not found(told, "S014")
    last = answer("It is <|im_end|>", question="Which ChatML token ends a message?")
    assert one(last, "S014").confidence is Confidence.POSSIBLE


def test_a_page_that_tells_of_an_error_is_not_an_answer() -> None:
    finding = one(answer(PAGE), "S014")
    assert finding.message == (
        "the answer text contains an HTML page with the title '502 Bad Gateway'"
    )
    assert finding.confidence is Confidence.LIKELY


@pytest.mark.parametrize(
    ("text", "question"),
    [
        (PAGE, "Write an HTML page for a 502."),
        (PAGE, "Schreibe eine 502-Seite."),
        (PAGE.replace("502 Bad\n Gateway", "My cat"), "Hi"),
        ("<html><body>Hello</body></html>", "Hi"),
        (f"Here it is: ```{PAGE}```", "Hi"),
    ],
)
def test_pages_that_were_asked_for_or_tell_of_no_error_are_fine(text: str, question: str) -> None:
    assert not found(answer(text, question=question), "S014")


def test_a_page_that_comes_piece_by_piece_may_be_the_models() -> None:
    finding = one(answer(PAGE[:20], PAGE[20:], question="Write one for a lost connection"), "S014")
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)


def test_a_page_behind_other_text_may_be_meant() -> None:
    finding = one(answer(f"The capital of {PAGE}"), "S014")
    assert finding.message.endswith("with the title '502 Bad Gateway', at the end of a turn")
    assert finding.confidence is Confidence.POSSIBLE


@pytest.mark.parametrize(
    "text", [GARBLED, QUOTES.encode().decode("cp1252"), QUOTES.encode().decode("latin-1")]
)
def test_text_in_another_encoding(text: str) -> None:
    finding = one(answer(text), "S014")
    assert "UTF-8 that was read as Latin-1" in finding.message
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.LIKELY)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("NÃO, SÃO PAULO e AMANHÃ", "Hi"),
        ("Ã© once", "Hi"),
        (GARBLED, f"Translate {GARBLED}"),
        (f"```\n{GARBLED}\n```", "Hi"),
        ("café été crème \u2019 \u2013 \u201c", "Hi"),
    ],
)
def test_accents_and_what_the_request_has_are_fine(text: str, question: str) -> None:
    assert not found(answer(text, question=question), "S014")


@pytest.mark.parametrize("more", ["", " \u4f60\u597d \U0001f600", " fa\u00e7ade"])
def test_a_text_that_is_garbled_throughout_or_cut_is_likely_garbled(more: str) -> None:
    text = f"Le café, l'été, la crème{more}".encode().decode("latin-1")
    for each in (text, text[: text.rindex("\u00c3") + 1]):
        assert one(answer(each), "S014").confidence is Confidence.LIKELY


@pytest.mark.parametrize(
    "text", ["Palavras: «MAÇÃ», «ROMÃ», «AVELÃ».", f"{GARBLED} — naïve", f"{GARBLED} \u4f60"]
)
def test_a_text_with_intact_characters_may_mean_the_others(text: str) -> None:
    finding = one(answer(text), "S014")
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)


def test_a_question_about_encodings_leaves_it_possible() -> None:
    finding = one(answer(GARBLED, question="Show me garbled text"), "S014")
    assert finding.confidence is Confidence.POSSIBLE


def test_a_character_that_was_cut_is_possibly_upstreams() -> None:
    finding = one(answer("A smile: ", "\ufffd\ufffd!"), "S014")
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)
    assert finding.event == 1
    assert not found(answer("It is \ufffd.", question="What is \ufffd?"), "S014")
    assert not found(answer("It is `\ufffd`."), "S014")


def test_bytes_that_are_invalid_on_the_wire_are_reported_as_that() -> None:
    body = b'data: {"choices":[{"index":0,"delta":{"content":"caf\xc3"}}]}\n\ndata: [DONE]\n\n'
    assert "W002" in codes(from_bytes(body))
    assert not found(from_bytes(body), "S014")


def test_reasoning_is_not_looked_at() -> None:
    assert not found(
        pasted(choice({"reasoning_content": "x<|im_end|>", "content": "Hi"}), FINISH_TEXT), "S014"
    )
