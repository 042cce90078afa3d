"""Stopping and continuing a session's processes: cgroup freezer, or signals without one."""
