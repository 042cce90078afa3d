"""NATS JetStream: coordination and the relays' bus in a cluster."""
