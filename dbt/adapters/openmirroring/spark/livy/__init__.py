"""Spark behind Livy's REST API, as Fabric and others have it."""
