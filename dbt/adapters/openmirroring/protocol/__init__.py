"""What happens next to a table: a pure function of what is known of it, and of what is wanted."""
