"""Places for named blobs: a directory, or a bucket behind a URL."""
