from deltatape.model.explanation import EventSource, TimelineEntry


def test_an_entry_without_findings_has_no_codes() -> None:
    entry = TimelineEntry(t_ns=None, exchange=1, event=None, what="asks", source=EventSource.APP)
    assert entry.codes == ()
