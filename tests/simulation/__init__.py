"""Whole protocols explored in a made-up world: every order of events, none of the waiting."""
