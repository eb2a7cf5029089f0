"""All scenes, by the code of the rule that they are for."""

from collections.abc import Mapping
from dataclasses import replace

from helpers import (
    scenes_apps,
    scenes_calls,
    scenes_histories,
    scenes_programs,
    scenes_requests,
    scenes_turns,
    scenes_wire,
)
from helpers.scenes import Pair, Pairs

_BY_RULE: Pairs = {
    **scenes_wire.wire(),
    **scenes_wire.stream(),
    **scenes_wire.recorder(),
    **scenes_calls.shape(),
    **scenes_calls.joined(),
    **scenes_calls.content(),
    **scenes_calls.several(),
    **scenes_calls.in_text(),
    **scenes_apps.events(),
    **scenes_apps.dead_zones(),
    **scenes_apps.conversations(),
    **scenes_turns.histories(),
    **scenes_turns.rounds(),
    **scenes_turns.reasoning(),
    **scenes_requests.texts(),
    **scenes_requests.broken_calls(),
    **scenes_requests.repetitions(),
    **scenes_requests.agents(),
    **scenes_histories.misplaced(),
}
_INNOCENT = (scenes_histories.innocent(), scenes_programs.innocent())


def _with_innocent(code: str, pair: Pair) -> Pair:
    more = {what: scene for each in _INNOCENT for what, scene in each.get(code, {}).items()}
    return replace(pair, innocent={**pair.innocent, **more})


PAIRS: Mapping[str, Pair] = {code: _with_innocent(code, pair) for code, pair in _BY_RULE.items()}
