"""What is judged before it happens, and who approves it."""
