"""The host itself: daemon, relay, gateways, checks."""
