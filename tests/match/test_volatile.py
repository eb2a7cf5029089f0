import json

import pytest

from deltatape.errors import UsageError
from deltatape.match.volatile import PRESETS, VolatileRules, readable


def masked(text: str, *options: str) -> str:
    """`text` as it counts, and is shown."""
    value = VolatileRules(options).reduced({"messages": [{"content": text}]})
    assert isinstance(value, dict)
    return readable(value["messages"][0]["content"])


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-26",
        "2026-11-26T09:17:41Z",
        "2026-11-26 09:17:41.123456+01:00",
        "2026-11-26, 09:17 UTC",
        "2026/11/26",
        "11/26/2026",
        "26.11.2026",
        "Thursday, November 26, 2026",
        "Nov 26th, 2026",
        "Thu Nov 26 2026",
        "Thu Nov 26 09:17:41 UTC 2026",
        "Thu, 26 Nov 2026 09:17:41 GMT",
        "26-Nov-2026",
        "09:17:41",
        "9:17:41 AM",
        "9:17 pm",
        "Nov 26 09:17",
        "20261126T091741Z",
        "20261126",
        "1795684661",
        "1795684661123",
        "1795684661.25",
    ],
)
def test_dates_are_masked_however_they_are_written(text: str) -> None:
    assert masked(f"Today is {text}.", "date") == "Today is <date>."
    assert masked(f"({text})", "date") == "(<date>)"


@pytest.mark.parametrize(
    "text", ["12:30", "1.2.3", "127.0.0.1", "v2026.1", "12345678", "May I?", "1:2:3", "9/10"]
)
def test_other_numbers_are_no_dates(text: str) -> None:
    assert masked(text, "date") == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("in /home/ann/my-app, now", "in <path>, now"),
        ("cd /opt/x.d/ && ls", "cd <path> && ls"),
        ("<cwd>/w</cwd>", "<cwd><path></cwd>"),
        ("cwd:/w", "cwd:<path>"),
        ('{\\"cwd\\": \\"/home/ann\\"}', '{\\"cwd\\": \\"<path>\\"}'),
        ("a\\n/home/ann/x.py: 3", "a\\n<path>: 3"),
        ("file:///home/ann/x", "file://<path>"),
        (r"in C:\Users\Ann\app", "in <path>"),
        (r"{\"cwd\": \"C:\\\\Users\\\\Ann\"}", r"{\"cwd\": \"<path>\"}"),
        ("https://example.com/a/b and src/a.py or ~/x, 1/2", None),
        ("./a/b ../c", None),
    ],
)
def test_absolute_paths_are_masked_and_nothing_that_looks_like_them(
    text: str, shown: str | None
) -> None:
    assert masked(text, "path") == (text if shown is None else shown)


def test_of_a_path_only_the_home_folder_may_differ() -> None:
    assert masked("/home/ann/app/a.py", "home") == "<home>/app/a.py"
    assert masked("/Users/bob/app/a.py", "home") == "<home>/app/a.py"
    assert masked("/root/app, /rooted, /x/home/ann", "home") == "<home>/app, /rooted, /x/home/ann"
    assert masked(r"C:\Users\Ann\app", "home") == r"<home>\app"


def test_uuids_ports_and_hashes_are_masked_alone() -> None:
    uuid = "0B9E4b1c-6f0e-4d5c-9a53-0d4b0c8a1f11"
    assert masked(f"session_{uuid}-x {uuid}0", "uuid") == f"session_<uuid>-x {uuid}0"
    assert masked("http://127.0.0.1:8377/v1 [::1]:80", "port") == (
        "http://127.0.0.1:<port>/v1 [::1]:<port>"
    )
    assert masked("localhost:4000, port 4000, {'port': 4000}", "port") == (
        "localhost:<port>, port <port>, {'port': <port>}"
    )
    assert masked("http://corp.example:443/ 3:15 line:12", "port") == (
        "http://corp.example:<port>/ 3:15 line:12"
    )
    assert masked("commit 98e22fd0, resp_68af12 ABCDEF0 deadbeef 1234567", "hash") == (
        "commit <hash>, resp_68af12 <hash> deadbeef 1234567"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pid 4242", "pid <pid>"),
        ("PID: 4242, x", "PID: <pid>, x"),
        ('{"pid": 4242}', '{"pid": <pid>}'),
        ('{\\"worker_pid\\":4242}', '{\\"worker_pid\\":<pid>}'),
        ("Background PIDs: 4242, 4243", "Background PIDs: <pid>"),
        ("Process Group PGID: 4242", "Process Group PGID: <pid>"),
        ("process 4242 died", "process <pid> died"),
        ("/proc/42/status", "/proc/<pid>/status"),
        ("[1] 4242", "[1] <pid>"),
        ("rapid 4242, 4242", "rapid 4242, 4242"),
    ],
)
def test_process_ids_are_known_by_what_stands_before_them(text: str, shown: str) -> None:
    assert masked(text, "pid") == shown


def test_an_expression_masks_what_it_fits_or_its_group() -> None:
    assert masked("run-17 of run-18", "/run-[0-9]+/") == "<masked> of <masked>"
    assert masked("session 4a: 4a", r"/session (\w+)/") == "session <masked>: 4a"
    assert masked("a/b/c", "/a/b/") == "<masked>/c"
    assert masked("abc", r"/\b(?=x)|b/") == "a<masked>c"
    assert masked("abc", r"/a(x)?|(?<=a)(?=b)/") == "<masked>bc"


def test_masks_are_applied_in_one_order_whatever_that_of_the_options() -> None:
    text = "/opt/2026-11-26/0b9e4b1c-6f0e-4d5c-9a53-0d4b0c8a1f11 at 2026-11-26"
    for options in (("date", "uuid", "path"), ("path", "uuid", "date")):
        assert masked(text, *options) == "<path> at <date>"
    assert masked(text, "path", "/2026/") == "<path> at <masked>-11-26"


def test_a_mask_with_a_path_looks_only_there() -> None:
    rules = VolatileRules(["messages[*].content:date", "metadata:uuid", "list[-1]:/x/"])
    uuid = "0b9e4b1c-6f0e-4d5c-9a53-0d4b0c8a1f11"
    value = {
        "messages": [{"content": "2026-11-26", "name": "2026-11-26"}],
        "metadata": {"deep": [uuid, 1, None]},
        "list": ["x", "x"],
        "other": uuid,
    }
    shown = json.loads(readable(json.dumps(rules.reduced(value), ensure_ascii=False)))
    assert shown == {
        "messages": [{"content": "<date>", "name": "2026-11-26"}],
        "metadata": {"deep": ["<uuid>", 1, None]},
        "list": ["x", "<masked>"],
        "other": uuid,
    }


def test_a_mask_does_not_look_into_the_model_unless_it_is_named() -> None:
    value = {"model": "gpt-4o-2024-08-06", "text": "2024-08-06", "n": [{"model": "2024-08-06"}]}
    shown = VolatileRules(["date"]).reduced(dict(value))
    assert readable(str(shown)) == (
        "{'model': 'gpt-4o-2024-08-06', 'text': '\\ufdd1date\\ufdd2',"
        " 'n': [{'model': '\\ufdd1date\\ufdd2'}]}"
    )
    named = VolatileRules(["model:date"]).reduced(dict(value))
    assert isinstance(named, dict)
    assert readable(named["model"]) == "gpt-4o-<date>"
    assert VolatileRules(["date"]).reduced({"model": 1}) == {"model": 1}


def test_a_body_may_be_a_single_text_or_number() -> None:
    assert readable(str(VolatileRules(["date"]).reduced("on 2026-11-26"))) == "on <date>"
    assert VolatileRules(["date"]).reduced(20261126) == 20261126


def test_fields_are_left_out_in_place() -> None:
    value = {"a": 1, "b": 2}
    VolatileRules(["a", "x"]).reduced(value)
    assert value == {"b": 2}
    marked = VolatileRules(["a", "date"]).reduced({"a": 1, "b": "2026-11-26"}, marks=False)
    assert marked == {"b": "2026-11-26"}


def test_a_field_with_the_name_of_a_preset_is_written_with_its_root() -> None:
    value = {"date": "x", "b": "2026-11-26"}
    assert VolatileRules(["$.date"]).reduced(dict(value)) == {"b": "2026-11-26"}
    assert VolatileRules(["['a:date']"]).reduced({"a:date": 1}) == {}
    marked = VolatileRules(["date"]).reduced(dict(value))
    assert isinstance(marked, dict)
    assert {*marked} == {"date", "b"}


def test_rules_know_what_they_are_made_of() -> None:
    assert not VolatileRules()
    assert not VolatileRules(["a"]).masks
    assert VolatileRules(["a:date"]).masks
    assert VolatileRules(["date", "a", "date"]).texts == ("date", "a")
    assert VolatileRules(["a:date"]).masked_text("2026-11-26") == "2026-11-26"
    assert readable(VolatileRules(["date"]).masked_text("2026-11-26")) == "<date>"


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("a..", "not a path; use a field such as metadata.session"),
        ("a..:date", "not a path; use a field"),
        ("", "a mask .date, hash, home, path, pid, port, uuid or /REGEX/., or a mask in a field"),
        ("input.*.output:pdi", "'pdi' is no mask; use date, hash, .* is written .'output:pdi'."),
        ("a:", "'' is no mask"),
        ("/x", "a regular expression ends with /"),
        ("/", "a regular expression ends with /"),
        ("a:/x", "a regular expression ends with /"),
        ("a:/(/", "no regular expression"),
        ("/(a+)+b/", "could take too long"),
    ],
)
def test_what_is_no_option_is_refused_with_what_would_be_one(option: str, problem: str) -> None:
    with pytest.raises(UsageError, match=f"--volatile .*{problem}"):
        VolatileRules([option])


@pytest.mark.parametrize("name", sorted(PRESETS))
@pytest.mark.parametrize(
    "text", ["1", "a", "/a", "a1", "-", "1-", "1:", "/home/a", "0a" * 9, ", 11"]
)
def test_a_preset_returns_on_any_text(name: str, text: str) -> None:
    assert masked(text * 20_000, name)
