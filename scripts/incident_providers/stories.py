"""The providers of the incidents: sound ones, and, for the same symptom, broken ones.

Each is a function of the request. The sound provider of an incident answers the broken and the
fixed application alike; what it says differs only as their histories do.
"""

from collections.abc import Iterator

from incident_providers.chat import (
    Call,
    begun,
    calls,
    ended,
    fragments,
    last,
    last_role,
    opened,
    says,
    text,
)
from incident_providers.wire import Asked, Send, parts, pieces, words

_CITY = '{"city": "Lisbon"}'
_FOOD = '{"city": "Lisbon", "food": "vegetarian"}'
_QUOTE = '{"symbol": "TSLA", "include_news": true}'
_READ_FILE = '{"tool_name": "read_file", "arguments": {"path": "config.yaml"}}'


def trips(asked: Asked) -> Iterator[Send]:
    """Incident 1: two calls at once; when tools fail, the model tries again, in 40 chunks."""
    if last_role(asked) == "user":
        if "weather" in last(asked, "user"):
            weather = Call("call_weather_1", "get_weather", tuple(pieces(_CITY, 5)))
            food = Call("call_food_1", "find_restaurants", tuple(pieces(_FOOD, 9)))
            return calls(weather, food)
        return calls(Call("call_itinerary_1", "get_itinerary", ()))
    result = last(asked, "tool")
    if "empty arguments" in result or "end of JSON input" in result:
        return says("I am sorry, I could not open your trip.")
    if "error" in result:
        weather = Call("call_weather_2", "get_weather", parts(_CITY, 14))
        food = Call("call_food_2", "find_restaurants", parts(_FOOD, 22))
        return calls(weather, food)
    if "Sintra" in result:
        return says("Alfama, Sintra and Belém, one a day.")
    return says("It will be sunny at 21 degrees, and Horta and Verde are vegetarian.")


def trips_cut(asked: Asked) -> Iterator[Send]:
    """Incident 1, upstream: the server closes a call with half of its arguments."""
    if last_role(asked) == "user":
        weather = Call("call_weather_1", "get_weather", ('{"ci', 'ty":'))
        food = Call("call_food_1", "find_restaurants", tuple(pieces(_FOOD, 9)))
        return calls(weather, food)
    return says("I am sorry, I could not see the weather.")


def stocks(asked: Asked) -> Iterator[Send]:
    """Incident 3: some words, then a call in fragments."""
    if last_role(asked) == "tool":
        return says("TSLA trades at 449.06, grade B, and the trend is bullish.")
    return _stock_call(Call("call_stock_1", "get_stock_analysis", tuple(pieces(_QUOTE, 11))))


def stocks_nameless(asked: Asked) -> Iterator[Send]:
    """Incident 3, upstream: the name of the tool never comes."""
    del asked
    return _stock_call(Call("call_stock_1", None, tuple(pieces(_QUOTE, 11))))


def _stock_call(call: Call) -> Iterator[Send]:
    yield begun()
    yield from text([*words("I will get you a TSLA analysis."), "\n\n"])
    yield opened(0, call)
    yield from fragments(0, call)
    yield from ended("tool_calls")


def _tool_text(*end: str) -> Iterator[Send]:
    yield begun()
    yield from text(words("I will look into the configuration.\n"))
    yield from text(["<tool>", *pieces(_READ_FILE, 13)])
    yield from text(end)
    yield from ended("stop")


def files(asked: Asked) -> Iterator[Send]:
    """Incident 4: a call in the text; after an error the model writes it once more."""
    told = last(asked, "user")
    if "port: 8081" in told:
        return says("The server listens on port 8081.")
    return _tool_text("</tool>") if "Error" in told else _tool_text("</tool", ">")


def files_malformed(asked: Asked) -> Iterator[Send]:
    """Incident 4, upstream: the model writes a bracket too many before a sound closing tag."""
    told = last(asked, "user")
    if "port: 8081" in told:
        return says("The server listens on port 8081.")
    return _tool_text("</tool>") if "Error" in told else _tool_text(">", "</tool>")


def agent(asked: Asked) -> Iterator[Send]:
    """Incident 5: an eager model. It calls again where it cannot see that it has called."""
    said, messages = last(asked, "user"), asked["messages"]
    number = len(messages) - 1
    if last_role(asked) == "tool" and "tool_calls" in messages[-2]:
        return says("There are agent.py and ui.py in src.")
    if "bye" in said:
        if last_role(asked) == "tool":
            return says("Bye!")
        return _whole(Call(f"call_list_{number}", "list_directory", ('{"path": "."}',)))
    if "src" in said:
        fragmented = ('{"pa', 'th": "s', 'rc"}')
        return calls(Call(f"call_list_{number}", "list_directory", fragmented))
    return _whole(Call(f"call_list_{number}", "list_directory", ('{"path": "."}',)))


def agent_looping(asked: Asked) -> Iterator[Send]:
    """Incident 5, upstream: the model calls the same tool again, whatever the history holds."""
    number = len(asked["messages"]) - 1
    return calls(Call(f"call_list_{number}", "list_directory", ('{"pa', 'th": "s', 'rc"}')))


def _whole(call: Call) -> Iterator[Send]:
    """A call that comes in one chunk."""
    yield begun()
    yield opened(0, call, "".join(call.arguments))
    yield from ended("tool_calls")
