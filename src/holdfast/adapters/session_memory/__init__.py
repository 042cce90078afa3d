"""The memory that a session and every daemon after the next share: one memfd and two pipes."""
