"""Who may ask: every rule, with a request that breaks it."""

import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from deltatape.inspector.server import POLICY
from helpers.hostile import FILE_NAME, hostile_tape
from helpers.inspected import TOKEN, Page, inspected

BEARER = f"Authorization: Bearer {TOKEN}"
ASK = "GET /api/tapes HTTP/1.1"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("tapes")
    hostile_tape(folder)
    with inspected(folder, folder / "index") as page:
        yield page.indexed(1)


def own(page: Page) -> str:
    return f"Host: {page.host}"


def test_nobody_is_answered_without_the_token(page: Page) -> None:
    for path in ("/static/app.js", "/api/tapes", "/api/live", "/nothing"):
        answer = page.ask([f"GET {path} HTTP/1.1", own(page)])
        assert answer.status == 401, path
        assert "open the URL" in answer.json()["error"]
    answer = page.ask(["GET / HTTP/1.1", own(page)])
    assert (answer.status, answer.fields["content-type"]) == (401, "text/plain; charset=utf-8")
    assert answer.body.decode().startswith("the token is missing: open the URL")


@pytest.mark.parametrize(
    "field",
    [
        "Authorization: Bearer",
        "Authorization: Bearer a-token-that-only-the-user-know",
        f"Authorization: Basic {TOKEN}",
        f"Authorization: {TOKEN}",
        f"Cookie: deltatape={TOKEN}",
        f"Cookie: deltatape-1={TOKEN}",
        "Authorization: Bearer \u00e9",
    ],
)
def test_another_proof_is_none(page: Page, field: str) -> None:
    assert page.ask([ASK, own(page), field]).status == 401


def test_the_link_gives_a_cookie_that_no_script_and_no_other_site_has(page: Page) -> None:
    answer = page.ask([f"GET /?token={TOKEN} HTTP/1.1", own(page)])
    assert (answer.status, answer.fields["location"]) == (303, "/")
    cookie, *attributes = answer.fields["set-cookie"].split("; ")
    assert sorted(attributes) == ["HttpOnly", "Path=/", "SameSite=Strict"]
    answer = page.ask([ASK, own(page), f"Cookie: other=1; {cookie}"])
    assert answer.status == 200


@pytest.mark.parametrize("token", ["", "x", f"{TOKEN}x"])
def test_a_link_with_another_token_leads_nowhere(page: Page, token: str) -> None:
    answer = page.ask([f"GET /?token={token} HTTP/1.1", own(page)])
    assert answer.status == 401
    assert "set-cookie" not in answer.fields


def test_what_a_browser_is_started_with_opens_the_page_once(page: Page) -> None:
    target = page.inspector.launch_link("").removeprefix("/")
    assert page.ask([f"GET /{target} HTTP/1.1", own(page)]).status == 303
    assert page.ask([f"GET /{target} HTTP/1.1", own(page)]).status == 401
    answer = page.ask([ASK, own(page), f"Authorization: Bearer {target.partition('=')[2]}"])
    assert answer.status == 401


@pytest.mark.parametrize(
    "host",
    [
        "Host: attacker.example",
        "Host: 127.0.0.1.attacker.example",
        "Host: localhost@attacker.example",
        "Host: 192.168.0.7",
        "X: no host at all",
        "Host: localhost\r\nHost: localhost",
    ],
)
def test_a_name_that_was_made_to_point_here_is_refused(page: Page, host: str) -> None:
    assert page.ask([ASK, *host.split("\r\n"), BEARER]).status in (400, 403)


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1", "[::1]:80"])
def test_any_name_of_this_machine_is_served(page: Page, host: str) -> None:
    assert page.ask([ASK, f"Host: {host}", BEARER]).status == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "anything"])
def test_what_another_page_makes_the_browser_send_is_refused(page: Page, site: str) -> None:
    for target in ("/api/tapes", "/", f"/?token={TOKEN}", "/static/app.js"):
        lines = [f"GET {target} HTTP/1.1", own(page), BEARER, f"Sec-Fetch-Site: {site}"]
        assert page.ask(lines).status == 403, target


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_the_page_itself_and_the_user_are_served(page: Page, site: str) -> None:
    assert page.get("/api/tapes", f"Sec-Fetch-Site: {site}").status == 200


@pytest.mark.parametrize(
    "origin", ["null", "http://attacker.example", "http://localhost:5173", "https://{host}"]
)
def test_a_page_of_another_origin_is_refused(page: Page, origin: str) -> None:
    assert page.get("/api/tapes", f"Origin: {origin.format(host=page.host)}").status == 403
    assert page.get("/api/tapes", f"Origin: http://{page.host}").status == 200


@pytest.mark.parametrize("method", ["POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_only_get_is_answered(page: Page, method: str) -> None:
    lines = [f"{method} /api/tapes HTTP/1.1", own(page), BEARER, "Content-Length: 0"]
    answer = page.ask(lines)
    assert (answer.status, answer.fields["allow"]) == (405, "GET")


def test_no_answer_may_be_kept_framed_or_run(page: Page) -> None:
    live = f"GET /api/live HTTP/1.0\r\nHost: {page.host}".split("\r\n")
    answers = [page.get(path) for path in ("/", "/static/app.js", "/api/tapes", "/nothing")]
    for answer in (*answers, page.ask(live)):
        assert answer.fields["content-security-policy"] == POLICY
        assert answer.fields["cache-control"] == "no-store"
        assert answer.fields["x-content-type-options"] == "nosniff"
        assert answer.fields["referrer-policy"] == "no-referrer"
        assert answer.fields["cross-origin-resource-policy"] == "same-origin"
        assert not [name for name in answer.fields if name.startswith("access-control")]
    assert "unsafe" not in POLICY
    assert POLICY.startswith("default-src 'none'")


def test_the_files_of_the_page_have_their_types_and_nothing_else_is_read(page: Page) -> None:
    types = {
        "/": "text/html",
        "/static/app.js": "text/javascript",
        "/static/style.css": "text/css",
    }
    for path, kind in types.items():
        answer = page.get(path)
        assert (answer.status, answer.fields["content-type"]) == (200, f"{kind}; charset=utf-8")
    for path in (
        "/static/",
        "/static/index.html",
        "/static/../server.py",
        "/static/..%2fserver.py",
        "/static/%2e%2e/server.py",
        "/index.html",
        "//etc/passwd",
    ):
        answer = page.get(path)
        assert answer.status == 404, path
        assert answer.fields["content-type"].startswith("application/json")


@pytest.mark.parametrize("tape", ["/etc/passwd", "../tapes/index", "index", ".", "\0", "x" * 5000])
def test_only_a_tape_of_the_list_is_opened(page: Page, tape: str) -> None:

    for path in ("show", "why", "steps", "raw", "copy", "diff", "thread"):
        query = f"tape={quote(tape)}&exchange=1&side=request&as=curl&other=x%231"
        assert page.get(f"/api/{path}?{query}").status == 404, path


def test_hostile_names_and_texts_come_as_text_of_json(page: Page) -> None:
    (tape,) = page.json("/api/tapes")["tapes"]
    assert tape["path"] == FILE_NAME

    place = f"tape={quote(FILE_NAME)}&exchange=1"
    for path in (f"/api/exchanges?{place}", f"/api/why?{place}", f"/api/show?{place}"):
        answer = page.get(path)
        assert answer.status == 200
        assert json.loads(answer.body)["version"] == 1
        assert answer.body.isascii()
        assert b"\x1b" not in answer.body
    raw = page.get(f"/api/raw?{place}&side=response")
    assert raw.fields["content-type"] == "application/octet-stream"
    assert raw.fields["content-disposition"] == "attachment"
    for kind in ("curl", "pytest", "command"):
        copy = page.get(f"/api/copy?{place}&as={kind}")
        assert copy.fields["content-type"] == "text/plain; charset=utf-8"
        assert all(each.isprintable() or each == "\n" for each in copy.body.decode()), kind
