"""The protocol, without I/O: messages, their frames, their meaning. docs/protocol.md describes it
for other implementers; a test keeps the two in step."""
