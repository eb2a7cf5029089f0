"""Ways to split bytes or text that a decoder must not notice."""

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import TypeVar

from hypothesis import strategies as st

Data = TypeVar("Data", bytes, str)


def cut(data: Data, at: Sequence[int]) -> list[Data]:
    """`data` in pieces, cut at the offsets `at`; no piece is empty."""
    edges = [0, *sorted(at), len(data)]
    pieces = [data[start:end] for start, end in pairwise(edges)]
    return [piece for piece in pieces if piece]


def each_alone(data: Data) -> list[Data]:
    """`data` byte by byte or character by character."""
    return [data[at : at + 1] for at in range(len(data))]


def cuttings(data: Data, *, pairs: bool = False) -> Iterator[list[Data]]:
    """`data` whole, one by one, at every single cut and, if asked for, at every pair of cuts."""
    yield [data]
    yield each_alone(data)
    for at in range(1, len(data)):
        yield cut(data, [at])
    if pairs:
        for two in combinations(range(1, len(data)), 2):
            yield cut(data, two)


def random_cuts(length: int) -> st.SearchStrategy[list[int]]:
    """Offsets at which to cut data of `length`."""
    return st.lists(st.integers(0, length), max_size=6)
