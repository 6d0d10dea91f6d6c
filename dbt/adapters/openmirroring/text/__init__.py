"""Text that is safe to show on any console, tables of it, and the codes of messages."""
