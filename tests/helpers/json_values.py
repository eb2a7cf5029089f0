"""JSON values for properties."""

from hypothesis import strategies as st


def json_values(
    scalars: st.SearchStrategy[object], keys: st.SearchStrategy[str], leaves: int = 8
) -> st.SearchStrategy[object]:
    """Return null, Booleans, these scalars, and small arrays and objects of them."""
    return st.recursive(
        st.none() | st.booleans() | scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=6),
        max_leaves=leaves,
    )
