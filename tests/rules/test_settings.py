from deltatape.rules.settings import DEFAULTS, Settings


def test_the_defaults_are_what_settings_are_without_a_word() -> None:
    assert Settings() == DEFAULTS
    assert DEFAULTS.stall_s == 10.0
