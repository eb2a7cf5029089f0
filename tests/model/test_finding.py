from deltatape.model.finding import Severity


def test_an_error_is_worse_than_a_warning_and_that_than_an_info() -> None:
    ranked = sorted(Severity, key=lambda severity: severity.rank)
    assert ranked == [Severity.ERROR, Severity.WARNING, Severity.INFO]
    assert Severity.ERROR.rank == 0
