from deltatape.model.story import Entry, Teller


def test_an_entry_without_findings_has_no_codes() -> None:
    entry = Entry(t_ns=None, exchange=1, event=None, what="asks", source=Teller.APP)
    assert entry.codes == ()
