"""Where paths really are, asked from this machine's filesystem.

As the daemon sees it: a session with mounts of its own may see other files under the same name. At
level contained the exec gate judges the file that is really opened.
"""

from __future__ import annotations

import os
import pwd


class RealPaths:
    """The filesystem of this machine."""

    def real(self, path: str) -> str:
        try:
            return os.path.realpath(path)
        except (OSError, ValueError):
            return os.path.normpath(path)

    def home(self, user: str) -> str:
        try:
            return pwd.getpwnam(user).pw_dir
        except KeyError:
            return ""
