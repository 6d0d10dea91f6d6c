"""The steps of a materialization between the hooks of its node."""
