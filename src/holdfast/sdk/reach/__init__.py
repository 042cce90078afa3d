"""Reaching hosts on other machines: relays, secure channels, joined machines."""
