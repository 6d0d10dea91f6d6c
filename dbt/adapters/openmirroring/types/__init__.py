"""What a type of Spark is: parsed, cast, as it lands, as JSON, and which values it can have."""
