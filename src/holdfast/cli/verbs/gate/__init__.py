"""What is judged before it commits, by what, and who approves it."""
