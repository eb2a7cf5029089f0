"""`deltatape demo`: records, checks and replays a small app on an embedded provider."""
