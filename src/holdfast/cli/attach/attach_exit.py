"""How an attachment ends, as exceptions: from wherever it was noticed to the one place that puts
the terminal back."""

from __future__ import annotations

from holdfast.model.state import Ending


class AttachDetached(Exception):
    """The operator leaves; the session stays."""

    def __init__(self, why: str = "") -> None:
        super().__init__(why)
        self.why = why


class AttachEnded(Exception):
    """The session ended while we were attached."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(str(ending))
        self.ending = ending
