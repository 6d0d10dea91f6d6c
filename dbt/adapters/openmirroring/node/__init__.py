"""What happens to a table-like node between its hooks."""
