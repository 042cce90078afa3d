"""What a policy knows of an effect: facts, computed by parsing and by looking at paths. Values
only; core/gate/effect_facts.py computes them."""

from __future__ import annotations

from holdfast.model.record import Record


class Facts(Record):
    """Of one effect. What could not be found out is a fact too, and never an empty one alone."""

    # whether the text was read whole; false: it is not known what it does, whatever else is here
    parsed: bool = True
    problem: str = ""  # of what was not parsed: why
    dynamic: bool = False  # some word is known only when the shell takes it: $x, $(...)
    # it runs something that cannot be read here: $cmd, eval "$x", a pipe into sh, python -c '...'
    opaque: bool = False
    nested: bool = (
        False  # some command runs another shell, or another command: bash -c, sudo, xargs
    )
    # names of the commands it runs, without directory; also nested ones; `?` is one that only the
    # shell knows
    commands: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()  # each of these commands, with its arguments, joined by one space
    pipelines: tuple[
        str, ...
    ] = ()  # names of the commands of each pipeline, joined by a vertical bar
    destructive: tuple[str, ...] = ()  # what about it destroys: rm-recursive, disk, force-push ...
    redirects: tuple[str, ...] = ()  # paths it redirects output to
    writes: tuple[str, ...] = ()  # paths it writes, makes or removes, as far as its commands tell
    writes_outside: tuple[str, ...] = ()  # those of them that are outside the workspace
    writes_unknown: bool = False  # it writes somewhere that is known only when it runs
    paths: tuple[str, ...] = ()  # every path it names
    paths_outside: tuple[str, ...] = ()  # those of them that are outside the workspace
    hosts: tuple[str, ...] = ()  # network destinations that it names: host or host:port
    assigned: tuple[str, ...] = ()  # names of the variables that it sets
    functions: tuple[str, ...] = ()  # names of the functions that it defines
    environment: tuple[str, ...] = ()  # names of variables that differ

    @property
    def unread(self) -> bool:
        """Whether it may do something that these facts do not tell."""
        return self.opaque or not self.parsed


class Score(Record):
    """How an actor has done so far in structured actions."""

    percent: int = 0  # mean score of its last `SCORE_RECENT` actions: a record that breaks shows
    actions: int = 0  # that were scored in the last 30 days; 0: nothing is known of it
