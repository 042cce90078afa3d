"""Starting a session's processes: namespaces, cgroup, PTY, pid 1."""
