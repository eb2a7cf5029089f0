"""Find what keeps an application from the recorder: in its code, packages, environment."""
