"""All scenes, by the code of the rule that they are for."""

from helpers import scenes_apps, scenes_calls, scenes_turns, scenes_wire
from helpers.scenes import Pairs

PAIRS: Pairs = {
    **scenes_wire.wire(),
    **scenes_wire.stream(),
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
}
