"""Access to Spark: starting or reaching it, running statements and describing tables."""
