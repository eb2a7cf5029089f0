"""The page of `deltatape open`, and its server; `npm run build --prefix web` writes static/."""
