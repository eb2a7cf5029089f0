"""Answers questions about a dataset of `deltatape scan`, in SQL over DuckDB.

`dataset` opens the tables as views, `prepared` has the questions in `questions/`, and `chart` draws
an answer.
"""
