"""The place that a command publishes to: landing zone, service and mirrored tables together."""
