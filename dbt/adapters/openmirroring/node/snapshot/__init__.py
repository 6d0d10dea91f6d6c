"""The snapshot of a node: the tables beside it, how it is replaced, and what is reused of it."""
