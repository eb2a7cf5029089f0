"""Apps in JavaScript; their sources are in tests/clients/odd_apps, beside the packages they use."""

from .kit import node_app
from .provider import call, calls, say

node_app(
    "zod-defaults",
    [
        calls(call("search", {"query": " cats ", "limit": "5", "kind": "picture"})),
        say("Five pictures of cats."),
    ],
    "Arguments go through a zod schema: defaults, coercion, unknown keys stripped, blanks trimmed.",
)
node_app(
    "json-round-trip",
    [
        calls(call("plot", '{"values": {"b": 1.0, "10": 2.50, "2": 1e3}, "scale": 1E-7}')),
        say("Here is the plot."),
    ],
    "JSON.parse and JSON.stringify write numbers and the order of keys their own way.",
)
node_app(
    "user-stops-by-abort",
    [say("Once upon a time there was a fox. " * 6, pace=0.03), say("A fox lived happily.")],
    "The user presses stop; the text so far stays in the chat.",
)
node_app(
    "abort-controller-timeout",
    [say("I am here, but slow.", hang=3), say("Yes.")],
    "The app's own patience of 600 ms is over; it asks once more.",
)
node_app(
    "openai-run-tools",
    [
        calls(call("time", {"city": "Oslo"}), call("time", {"city": "Lima"})),
        say("Noon in Oslo, six in Lima."),
    ],
    "The SDK runs the tools by itself.",
)
node_app(
    "openai-responses-stateless",
    [calls(call("height", {"of": "K2"}), reasoning="K2 is a mountain."), say("8611 m.")],
    "Without storage the reasoning goes back encrypted, and items without their ids.",
)
node_app(
    "ai-sdk-agent",
    [
        calls(call("weather", {"city": "Turin"}), call("weather", {"city": "Genoa", "unit": "C"})),
        say("12 and 17 degrees."),
    ],
    "The AI SDK runs tools by itself, with defaults of zod.",
)
node_app(
    "ai-sdk-approval",
    [
        calls(call("pay", {"to": "Kim", "amount": 20}), text="I'll pay Kim."),
        say("I did not pay Kim."),
    ],
    "A tool without execute: the user is asked, and denies.",
)
node_app(
    "ai-sdk-pruned",
    [
        calls(call("find", {"q": "a"})),
        say("Found a."),
        calls(call("find", {"q": "b"})),
        say("Found b."),
        say("a and b."),
    ],
    "The AI SDK prunes calls of earlier turns from what it sends.",
)
