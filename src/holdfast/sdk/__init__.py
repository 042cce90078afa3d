"""The client's side of the protocol, for programs. Blocking and light: every `hold` verb stands on
it, so it imports nothing it does not need."""
