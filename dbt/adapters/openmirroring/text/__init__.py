"""Text that is safe to show, on any console."""
