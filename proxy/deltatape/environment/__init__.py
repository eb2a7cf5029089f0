"""The variables, also in `.env` files, that decide where an application sends its requests."""
