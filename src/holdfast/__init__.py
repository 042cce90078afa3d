"""holdfast: the live execution as an object that nobody owns.

    from holdfast import connect

    async with connect() as hold:
        build = await hold.session("build")
        result = await build.submit("make test")

The same without async: `from holdfast import blocking`. What there is: docs/sdk.md. Names are
loaded when they are first used: every `hold` command imports this module and needs none of them.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model import errors as errors
    from holdfast.model.errors import HoldfastError as HoldfastError
    from holdfast.model.graph import Process as Process
    from holdfast.model.info import SessionInfo as SessionInfo
    from holdfast.model.movability import Movability as Movability
    from holdfast.model.restore import RestoreReport as RestoreReport
    from holdfast.model.state import Ending as Ending
    from holdfast.model.state import SessionState as SessionState
    from holdfast.sdk import blocking as blocking
    from holdfast.sdk import events as events
    from holdfast.sdk import snapshots as snapshots
    from holdfast.sdk.aio.command_run import Running as Running
    from holdfast.sdk.aio.hold import Hold as Hold
    from holdfast.sdk.aio.hold import connect as connect
    from holdfast.sdk.aio.port_forward import PortForward as PortForward
    from holdfast.sdk.aio.session import Session as Session
    from holdfast.sdk.aio.turn import Turn as Turn
    from holdfast.sdk.aio.values import ActionResult as ActionResult
    from holdfast.sdk.aio.values import Checkpoint as Checkpoint
    from holdfast.sdk.aio.values import LiveGraph as LiveGraph
    from holdfast.sdk.aio.values import Piece as Piece
    from holdfast.sdk.aio.values import Refusal as Refusal
    from holdfast.sdk.aio.values import Result as Result
    from holdfast.sdk.aio.values import Screen as Screen
    from holdfast.sdk.aio.values import StateName as StateName
    from holdfast.sdk.aio.values import TurnState as TurnState

# Where each public name is; an empty one is the module itself.
_PUBLIC = {
    "errors": ("holdfast.model.errors", ""),
    "HoldfastError": ("holdfast.model.errors", "HoldfastError"),
    "blocking": ("holdfast.sdk.blocking", ""),
    "events": ("holdfast.sdk.events", ""),
    "snapshots": ("holdfast.sdk.snapshots", ""),
    "Hold": ("holdfast.sdk.aio.hold", "Hold"),
    "connect": ("holdfast.sdk.aio.hold", "connect"),
    "PortForward": ("holdfast.sdk.aio.port_forward", "PortForward"),
    "Running": ("holdfast.sdk.aio.command_run", "Running"),
    "Session": ("holdfast.sdk.aio.session", "Session"),
    "Turn": ("holdfast.sdk.aio.turn", "Turn"),
    "ActionResult": ("holdfast.sdk.aio.values", "ActionResult"),
    "Ending": ("holdfast.model.state", "Ending"),
    "Checkpoint": ("holdfast.sdk.aio.values", "Checkpoint"),
    "LiveGraph": ("holdfast.sdk.aio.values", "LiveGraph"),
    "Movability": ("holdfast.model.movability", "Movability"),
    "Process": ("holdfast.model.graph", "Process"),
    "SessionInfo": ("holdfast.model.info", "SessionInfo"),
    "RestoreReport": ("holdfast.model.restore", "RestoreReport"),
    "StateName": ("holdfast.sdk.aio.values", "StateName"),
    "SessionState": ("holdfast.model.state", "SessionState"),
    "TurnState": ("holdfast.sdk.aio.values", "TurnState"),
    "Piece": ("holdfast.sdk.aio.values", "Piece"),
    "Refusal": ("holdfast.sdk.aio.values", "Refusal"),
    "Result": ("holdfast.sdk.aio.values", "Result"),
    "Screen": ("holdfast.sdk.aio.values", "Screen"),
}


if not TYPE_CHECKING:  # a type checker knows the names above, and should miss any other

    def __getattr__(name: str) -> object:
        if name not in _PUBLIC:
            raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
        from importlib import import_module

        module, member = _PUBLIC[name]
        found = import_module(module)
        return getattr(found, member) if member else found

    def __dir__() -> list[str]:
        return sorted([*globals(), *_PUBLIC])
