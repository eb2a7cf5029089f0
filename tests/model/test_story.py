from deltatape.model.story import EventSource, StoryEntry


def test_an_entry_without_findings_has_no_codes() -> None:
    entry = StoryEntry(t_ns=None, exchange=1, event=None, what="asks", source=EventSource.APP)
    assert entry.codes == ()
