"""Parts of a command beside its nodes: status, recovery, orphans, replication, documentation."""
