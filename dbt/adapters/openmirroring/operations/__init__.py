"""What a command does besides nodes: status, recovery, orphans, replication, documentation."""
