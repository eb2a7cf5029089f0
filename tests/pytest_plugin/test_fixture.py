"""What a test can ask the fixture `tape`."""

from pathlib import Path

import pytest

from deltatape.player.play_options import PlayOptions
from deltatape.pytest_plugin.fixture import TapeFixture
from deltatape.replay.playback import Playback
from helpers.pytest_projects import hello

VARIABLES = {
    "OPENAI_BASE_URL": "http://127.0.0.1:8378/openai/v1",
    "ANTHROPIC_API_URL": "http://127.0.0.1:8378/anthropic",
}


@pytest.mark.parametrize(
    ("provider", "url"),
    [
        ("openai", "http://127.0.0.1:8378/openai/v1"),
        ("anthropic", "http://127.0.0.1:8378/anthropic"),
        ("groq", "{}/groq"),
        ("corp", "{}/corp"),
        ("", "{}"),
    ],
)
def test_a_base_url_is_that_of_the_provider_s_variables(provider: str, url: str) -> None:
    playback = Playback((hello(),), PlayOptions())
    with playback:
        fixture = TapeFixture(
            path=Path("x.tape"), mode="replay", machine=playback, variables=VARIABLES
        )
        assert fixture.url(provider) == url.format(playback.url)
        assert len(fixture.report.unplayed) == 1
        assert not fixture.hostile
        assert repr(fixture) == "TapeFixture(path=PosixPath('x.tape'), mode='replay', variation='')"
