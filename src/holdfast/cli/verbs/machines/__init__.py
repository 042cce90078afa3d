"""Invite, join and delegate between machines."""
