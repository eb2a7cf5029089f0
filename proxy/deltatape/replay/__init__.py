"""`deltatape replay`: a player, the command around it, and what came of it."""
