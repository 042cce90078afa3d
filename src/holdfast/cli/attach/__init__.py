"""`hold attach`: the client at a terminal."""
