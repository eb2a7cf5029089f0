"""The environment variables and `.env` files that decide where an application sends requests."""
