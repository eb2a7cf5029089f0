"""The pytest plugin: tapes as a test's provider.

    @pytest.mark.tape("recordings/weather.tape")
    def test_the_agent_tells_the_weather() -> None: ...

`hooks` is what pytest loads with every run, so it imports nothing but pytest; all the rest is
imported when the first test with a tape runs. What users may rely on: docs/pytest.md.
"""
