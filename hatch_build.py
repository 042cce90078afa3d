"""Puts the web app into a wheel: built from web/ while the wheel is, if it is not there already.

Not for an editable installation: scripts/setup builds it there, and goes on without it where that
cannot be done. A wheel without it would be a surprise to somebody else later, so there it fails,
with the reason; HOLDFAST_WEB=off asks for a wheel without."""

from __future__ import annotations

import os
import runpy
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WebApp(BuildHookInterface):  # type: ignore[type-arg]
    """Hatchling's hook; the work is done by scripts/web-build."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or self._unwanted:
            return
        script = self._script()
        try:
            script["build"](force=False)
        except script["CannotBuild"] as error:
            raise RuntimeError(
                f"the web app cannot be built: {error}\nHOLDFAST_WEB=off builds without it"
            ) from None

    def dependencies(self) -> list[str]:
        """A Node.js, where the machine has none that is new enough."""
        if self._unwanted:
            return []
        script = self._script()
        node = script["shutil"].which("node")
        return [] if node and script["new_enough"](node) else [script["PACKAGE"]]

    @property
    def _unwanted(self) -> bool:
        return os.environ.get("HOLDFAST_WEB") == "off" or self.target_name != "wheel"

    def _script(self) -> dict[str, Any]:
        return runpy.run_path(os.path.join(self.root, "scripts", "web-build"))
