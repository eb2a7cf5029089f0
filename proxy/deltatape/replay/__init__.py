"""`deltatape replay`: a player, the command around it, and the result."""
