"""Which Spark runs the statements, how it is started, and what it says of tables."""
