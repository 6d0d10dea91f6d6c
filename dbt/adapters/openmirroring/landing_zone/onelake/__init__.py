"""A landing zone in OneLake."""
