"""The kernel's system call filter with user notification: the exec gate's mechanism."""
