"""Write into a session, signal it, reach its ports."""
