"""What the host and the relay need from outside, as small Protocols. Adapters implement them."""
