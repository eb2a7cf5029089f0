"""Scans tapes on Ray: python ray_scan.py FOLDER|URL DATASET [ADDRESS].

Every node has the same version of deltatape[fleet], and sees the same paths.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import ray

from deltatape.model.rule_settings import DEFAULTS
from deltatape.scan.engine import Lost
from deltatape.scan.scan import scan


class RayEngine:
    """Has the tasks of a scan done by Ray, which does those of a dead worker again."""

    def map(
        self, function: Callable[[Any], Any], items: Iterable[Any]
    ) -> Iterator[tuple[Any, Any]]:
        """Yield each item with its result, as they come."""
        # Ray takes functions only, not what functools.partial makes of them.
        task = ray.remote(max_retries=3)(lambda item: function(item))  # noqa: PLW0108
        left, running = iter(items), {}
        while True:
            room = 2 * int(ray.cluster_resources().get("CPU", 1)) - len(running)
            running.update({task.remote(item): item for item in islice(left, max(room, 0))})
            if not running:
                return
            (done,), _ = ray.wait(list(running), num_returns=1)
            item = running.pop(done)
            try:
                result = ray.get(done)
            except ray.exceptions.WorkerCrashedError as error:
                result = Lost(str(error))
            yield item, result


if __name__ == "__main__":
    source, out, *address = sys.argv[1:]
    ray.init(address=address[0] if address else None)
    print(scan(source, out, RayEngine(), DEFAULTS))
