"""`deltatape.yaml`: found, read safely, checked, and handed to the commands as defaults."""
