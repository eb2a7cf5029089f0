from deltatape.model.exchange import EndReason
from deltatape.mutate import Seeded
from deltatape.mutate._cuts import cut_before
from deltatape.mutate._draft import Draft
from helpers.mutated import ONE


def test_a_body_ends_in_good_order_or_breaks() -> None:
    reasons = set()
    for seed in range(20):
        draft = Draft.of(ONE)
        assert draft
        cut_before(draft, 2, Seeded(seed))
        result = draft.result()
        assert result
        assert result.end
        assert result.body.count(b"data: ") == 2
        reasons.add(result.end.reason)
    assert reasons == {EndReason.COMPLETE, EndReason.UPSTREAM_CLOSED, EndReason.UPSTREAM_RESET}
