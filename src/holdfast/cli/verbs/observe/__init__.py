"""Look at a session without writing into it."""
