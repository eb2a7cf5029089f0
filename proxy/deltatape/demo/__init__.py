"""`deltatape demo`: the whole story on an embedded provider, and its little application."""
