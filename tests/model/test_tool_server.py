"""The upstream of a server on stdin and stdout names it."""

from deltatape.model.tool_server import stdio_name, stdio_upstream


def test_an_upstream_tells_a_server_on_stdin_and_stdout_by_its_name() -> None:
    assert stdio_name(stdio_upstream("weather")) == "weather"
    assert stdio_name("http://127.0.0.1:8000") == ""
