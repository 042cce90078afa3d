"""What the host needs from outside, as small Protocols. Adapters provide them; tests may too."""
