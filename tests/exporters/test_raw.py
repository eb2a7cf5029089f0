import json

from deltatape.diagnose.rebuild import analyse
from deltatape.exporters import export
from deltatape.exporters.raw import RawExporter
from deltatape.model.exchange import Exchange
from helpers.taped import taped


def files(*exchanges: Exchange) -> dict[str, bytes]:
    return dict(export([analyse(each) for each in exchanges], RawExporter(), "1").files)


def test_an_exchange_is_a_folder_that_import_reads() -> None:
    found = files(taped([(1, b"data: \xff\n\n")], body=b"\xfe"))
    assert found["body.raw"] == b"data: \xff\n\n"
    assert found["request.raw"] == b"\xfe"
    assert json.loads(found["request.json"]) == {
        "method": "POST",
        "url": "https://api.openai.com/v1/chat/completions",
        "headers": [],
    }
    assert json.loads(found["response.json"]) == {
        "status": 200,
        "headers": [["Content-Type", "text/event-stream"], ["Transfer-Encoding", "chunked"]],
    }


def test_several_are_folders_in_their_order() -> None:
    assert {name.partition("/")[0] for name in files(taped(), taped())} == {"0001", "0002"}
