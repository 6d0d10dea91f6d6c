"""A landing zone in a folder of this machine, or of a file system that it mounts."""
