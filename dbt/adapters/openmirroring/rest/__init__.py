"""Requests to REST APIs: retries, and the reason of a failure."""
