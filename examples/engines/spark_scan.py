"""Scans tapes on Spark: spark-submit spark_scan.py FOLDER|URL DATASET.

Every node has the same version of deltatape[fleet], and sees the same paths.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from deltatape.model.rule_settings import DEFAULTS
from deltatape.scan.scan import scan

WAVE = 8
"""Tasks of a job for each core: a job ends with its slowest tape."""


class SparkEngine:
    """Has the tasks of a scan done by Spark, which does those of a dead executor again."""

    def __init__(self, context: Any) -> None:
        """Take a `SparkContext`."""
        self._context = context

    def map(
        self, function: Callable[[Any], Any], items: Iterable[Any]
    ) -> Iterator[tuple[Any, Any]]:
        """Yield each item with its result, a job's at a time."""
        left = iter(items)
        while wave := list(islice(left, WAVE * self._context.defaultParallelism)):
            tasks = self._context.parallelize(wave, len(wave))
            yield from tasks.map(lambda item: (item, function(item))).collect()


if __name__ == "__main__":
    from pyspark.sql import SparkSession

    session = SparkSession.builder.appName("deltatape scan").getOrCreate()
    print(scan(*sys.argv[1:3], SparkEngine(session.sparkContext), DEFAULTS))
