from deltatape.store.ledger import Ledger


def test_losses_are_counted_per_exchange_and_in_all() -> None:
    ledger = Ledger(lambda _: None)
    ledger.lost([1, 2, 1], [b"a", b"bb", b"ccc"], "full")
    ledger.lost([1], [b"d"], "broken")
    assert ledger.of(1) == {"lost_records": 3, "lost_bytes": 5, "error": "broken"}
    assert ledger.of(2) == {"lost_records": 1, "lost_bytes": 2, "error": "full"}
    assert ledger.of(3) == {}
    assert (ledger.records, ledger.bytes) == (4, 7)


def test_an_alarm_sounds_once_per_kind_of_trouble() -> None:
    alarms: list[str] = []
    ledger = Ledger(alarms.append)
    ledger.trouble("full", "the disk is full")
    ledger.trouble("full", "the disk is still full")
    ledger.trouble("slow", "the disk is slow")
    assert alarms == ["the disk is full", "the disk is slow"]


def test_losses_without_end_take_no_memory_without_end() -> None:
    ledger = Ledger(lambda _: None)
    for exchange in range(10_000):
        ledger.lost([exchange], [b"x"], "full")
    assert ledger.of(0) == {}
    assert ledger.of(9_999)["lost_records"] == 1
    assert ledger.records == 10_000
