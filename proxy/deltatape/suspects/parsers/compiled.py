"""The words of Go's encoding/json, Rust's serde_json, Java's Jackson and Gson, .NET's System.Text.

Sources: https://go.dev/src/encoding/json/scanner.go, https://docs.rs/serde_json (`ErrorCode`),
https://github.com/FasterXML/jackson-core, https://github.com/google/gson (`JsonReader`),
https://github.com/dotnet/runtime (System.Text.Json, `Strings.resx`).
"""

from collections.abc import Iterator

from deltatape.suspects.parsers.failure import Failure, Where

_GO = {
    Where.VALUE: "looking for beginning of value",
    Where.ELEMENT: "looking for beginning of value",
    Where.FIRST_KEY: "looking for beginning of object key string",
    Where.KEY: "looking for beginning of object key string",
    Where.COLON: "after object key",
    Where.IN_OBJECT: "after object key:value pair",
    Where.IN_ARRAY: "after array element",
    Where.AFTER: "after top-level value",
    Where.CONTROL: "in string literal",
    Where.ESCAPE: "in string escape code",
    Where.HEX: r"in \u hexadecimal character escape",
    Where.MINUS: "in numeric literal",
    Where.FRACTION: "after decimal point in numeric literal",
    Where.EXPONENT: "in exponent of numeric literal",
}
_GO_QUOTED = {
    "'": r"'\''",
    '"': "'\"'",
    "\\": r"'\\'",
    **{sign: rf"'\{letter}'" for sign, letter in zip("\a\b\f\n\r\t\v", "abfnrtv", strict=True)},
}
_GO_TOKENS = frozenset({Where.LITERAL, Where.MINUS, Where.FRACTION, Where.EXPONENT})
"""Where the end of the text is a blank to Go, which ends a token."""
_RUST_EOF = {
    Where.STRING: "a string",
    Where.FIRST_KEY: "an object",
    Where.COLON: "an object",
    Where.IN_OBJECT: "an object",
    Where.ELEMENT: "a list",
    Where.IN_ARRAY: "a list",
}
_RUST = {
    Where.VALUE: "expected value",
    Where.ELEMENT: "expected value",
    Where.FIRST_KEY: "key must be a string",
    Where.KEY: "key must be a string",
    Where.COLON: "expected `:`",
    Where.IN_OBJECT: "expected `,` or `}`",
    Where.IN_ARRAY: "expected `,` or `]`",
    Where.AFTER: "trailing characters",
    Where.CONTROL: r"control character (\u0000-\u001F) found while parsing a string",
    Where.ESCAPE: "invalid escape",
    Where.HEX: "invalid escape",
    Where.LITERAL: "expected ident",
}
_DOTNET = {
    Where.VALUE: "is an invalid start of a value.",
    Where.ELEMENT: "is an invalid start of a value.",
    Where.FIRST_KEY: "is an invalid start of a property name. Expected a '\"'.",
    Where.KEY: "is an invalid start of a property name. Expected a '\"'.",
    Where.COLON: "is invalid after a property name. Expected a ':'.",
    Where.IN_OBJECT: "is invalid after a value. Expected either ',', '}', or ']'.",
    Where.IN_ARRAY: "is invalid after a value. Expected either ',', '}', or ']'.",
    Where.AFTER: "is invalid after a single JSON value. Expected end of data.",
    Where.CONTROL: "is invalid within a JSON string. The string should be correctly escaped.",
    Where.ESCAPE: "is an invalid escapable character within a JSON string. The string should be"
    " correctly escaped.",
}
_LATIN = 255
_OPEN = {"{": "Object", "[": "Array"}


def go(failure: Failure) -> Iterator[str]:
    """What Go's `json.Unmarshal` says."""
    if failure.ended and failure.where not in _GO_TOKENS:
        yield "unexpected end of JSON input"
        return
    sign = _go_quoted(failure.sign)
    if failure.where is Where.LITERAL:
        word = {"t": "true", "f": "false", "n": "null"}[failure.text[failure.token]]
        yield f"invalid character {sign} in literal {word} (expecting '{failure.expected}')"
    elif failure.where is Where.LEADING_ZERO:
        yield f"invalid character {sign} {_after_value(failure)}"
    else:
        yield f"invalid character {sign} {_GO[failure.where]}"


def _go_quoted(sign: str) -> str:
    """A byte as Go quotes it: the first one of a character; a blank at the end of the text."""
    byte = (sign or " ").encode(errors="surrogatepass")[0]
    if byte < ord(" ") and chr(byte) not in _GO_QUOTED:
        return rf"'\x{byte:02x}'"
    return _GO_QUOTED.get(chr(byte), f"'{chr(byte)}'")


def _after_value(failure: Failure) -> str:
    inside = {"{": Where.IN_OBJECT, "[": Where.IN_ARRAY}
    return _GO[inside.get(failure.stack[-1:], Where.AFTER)]


def rust(failure: Failure) -> Iterator[str]:
    """What serde_json says: lines from 1, columns in bytes, of the byte it failed at."""
    before = failure.text[: failure.at].encode(errors="surrogatepass")
    line = before.count(b"\n") + 1
    column = len(before) - before.rfind(b"\n") - 1
    if failure.ended:
        what = _RUST_EOF.get(failure.where, "a value")
        yield f"EOF while parsing {what} at line {line} column {column}"
        return
    said = _RUST.get(failure.where, "invalid number")
    if failure.where is Where.KEY and failure.sign == "}":
        said = "trailing comma"
    yield f"{said} at line {line} column {column + 1}"


def java(failure: Failure) -> Iterator[str]:
    """What Jackson and Gson say, up to where they describe their source."""
    sign = failure.sign
    if failure.ended:
        yield from _java_ended(failure)
    else:
        code = f"code {ord(sign)}" + (f" / 0x{ord(sign):x}" if ord(sign) > _LATIN else "")
        yield f"Unexpected character ('{sign}' ({code}))"
        yield "Use JsonReader.setLenient(true) to accept malformed JSON"
        yield "Use JsonReader.setStrictness(Strictness.LENIENT) to accept malformed JSON"
    if failure.text[:1] not in ("{", ""):
        yield "Expected BEGIN_OBJECT but was STRING"


def _java_ended(failure: Failure) -> Iterator[str]:
    if not failure.text.strip():
        yield "No content to map due to end-of-input"
        yield "End of input at line 1 column 1 path $"
        return
    if failure.where is Where.STRING:
        yield "Unexpected end-of-input in VALUE_STRING"
        yield "Unexpected end-of-input: was expecting closing quote for a string value"
        yield "Unterminated string at line 1 column"
    elif failure.stack:
        yield f"Unexpected end-of-input: expected close marker for {_OPEN[failure.stack[-1]]}"
        yield "Unexpected end-of-input within/between"
    yield "End of input at line 1 column"


def dotnet(failure: Failure) -> Iterator[str]:
    """What System.Text.Json says, up to the path."""
    if not failure.text.strip():
        yield "The input does not contain any JSON tokens. Expected the input to start with a valid"
        return
    if failure.where is Where.STRING:
        yield "Expected end of string, but instead reached end of data."
    elif failure.ended:
        yield (
            "Expected depth to be zero at the end of the JSON payload. There is an open JSON object"
            " or array that should be closed."
        )
    elif failure.where is Where.LITERAL:
        yield f"'{failure.text[failure.token]}' is an invalid start of a value."
    else:
        sign = f"0x{ord(failure.sign):02X}" if ord(failure.sign) < ord(" ") else failure.sign
        said = _DOTNET.get(failure.where, "is an invalid end of a number.")
        yield f"'{sign}' {said}"
