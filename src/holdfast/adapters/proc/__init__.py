"""What the kernel says of processes, files, sockets and terminals, read from /proc and netlink."""
