"""What keeps an application from the recorder: in its code, its packages, its surroundings."""
