"""What every adapter of one port must do, shown on each of them by the same tests."""
