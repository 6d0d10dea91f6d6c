"""Text that is safe to show on any console, and tables of it."""
