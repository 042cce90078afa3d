"""Completion scripts, made from the verbs' own parsers, so that they cannot go stale.

What can be completed is the same in the three shells: the verb; its options; and for each place
behind it a list of words, the names of sessions or actors, or files. What may come any number of
times is completed the same way each time.
"""

from __future__ import annotations

import argparse
from shlex import quote

from holdfast.cli.dispatch import VERBS, load
from holdfast.model.record import Record

# The light way to the names: one column of the listing, no JSON to parse.
_NAMES = "hold ls 2>/dev/null | awk 'NR > 1 { print $1 }'"
_ACTORS_NAMES = "hold actor ls 2>/dev/null | awk 'NR > 1 { print $1 }'"
_FILES, _SESSIONS, _ACTORS = "@files", "@sessions", "@actors"
_ACTOR_PLACES = ("actor", "to", "only_actor")  # what verbs call a place for one
_WAIT_FOR = ("prompt", "input", "secret", "stopped", "exit", "text:")


class _Option(Record):
    """One option: all its spellings, its help, and what its value may be ("" takes none)."""

    flags: tuple[str, ...]
    help: str
    value: str


class _Verb(Record):
    name: str
    summary: str
    options: tuple[_Option, ...]
    places: tuple[str, ...]  # what each positional may be, in order
    rest: str  # what any further one may be: the last again, if it may be repeated


def script(shell: str) -> str:
    """The whole script for one shell."""
    verbs = [_describe(name) for name in VERBS]
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](verbs)


def _describe(name: str) -> _Verb:
    module = load(name)
    options, places, rest = [], [], _FILES
    for action in module.parser()._actions:
        if action.option_strings:
            value = "" if action.nargs == 0 else _values(action)
            options.append(_Option(tuple(action.option_strings), action.help or "", value))
        else:
            places.append(_values(action))
            rest = places[-1] if action.nargs in ("*", "+") else _FILES
    return _Verb(name, module.SUMMARY, tuple(options), tuple(places), rest)


def _values(action: argparse.Action) -> str:
    if action.choices is not None:
        return " ".join(str(choice) for choice in action.choices)
    if action.dest in ("session", "after"):
        return _SESSIONS
    if action.dest in _ACTOR_PLACES:
        return _ACTORS
    if action.dest == "rights":
        from holdfast.model.envelope import ROLES, Right

        return " ".join((*ROLES, *Right))
    if action.dest == "kinds":
        from holdfast.journal.entries import BY_TAG

        return " ".join(BY_TAG)
    if action.dest == "wanted":
        return " ".join(_WAIT_FOR)
    return _FILES


# -- bash -------------------------------------------------------------------------------------


def _bash(verbs: list[_Verb]) -> str:
    cases = "\n".join(_bash_case(verb) for verb in verbs)
    return f"""\
# bash completion for hold
_hold() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
    local options= values= places=() rest= place=0 first=1 index
    COMPREPLY=()
    if [[ ${{COMP_WORDS[1]}} == --as ]] && (( COMP_CWORD > 1 )); then
        first=3
    fi
    if (( COMP_CWORD < first )); then
        COMPREPLY=($(compgen -W "$({_ACTORS_NAMES})" -- "$word"))
        return
    fi
    if (( COMP_CWORD == first )); then
        COMPREPLY=($(compgen -W "{" ".join(verb.name for verb in verbs)} --as" -- "$word"))
        return
    fi
    case ${{COMP_WORDS[first]}} in
{cases}
        *) return ;;
    esac
    if [[ -z $values ]]; then
        if [[ $word == -* ]]; then
            COMPREPLY=($(compgen -W "$options" -- "$word"))
            return
        fi
        for (( index = first + 1; index < COMP_CWORD; index++ )); do
            [[ ${{COMP_WORDS[index]}} == -* ]] || (( place++ ))
        done
        values=${{places[place]:-$rest}}
    fi
    case $values in
        {_ACTORS}) COMPREPLY=($(compgen -W "$({_ACTORS_NAMES})" -- "$word")) ;;
        {_SESSIONS}) COMPREPLY=($(compgen -W "$({_NAMES})" -- "$word")) ;;
        {_FILES}|"") COMPREPLY=($(compgen -f -- "$word")) ;;
        *) COMPREPLY=($(compgen -W "$values" -- "$word")) ;;
    esac
}}
complete -F _hold hold
"""


def _bash_case(verb: _Verb) -> str:
    flags = " ".join(flag for option in verb.options for flag in option.flags)
    places = " ".join(quote(place) for place in verb.places)
    setting = f"options='{flags}'; places=({places}); rest={quote(verb.rest)}"
    lines = [f"        {verb.name})", f"            {setting}"]
    taking = [option for option in verb.options if option.value]
    if taking:
        lines.append("            case $previous in")
        lines += [
            f"                {'|'.join(option.flags)}) values='{option.value}' ;;"
            for option in taking
        ]
        lines.append("            esac")
    return "\n".join([*lines, "            ;;"])


# -- zsh --------------------------------------------------------------------------------------


def _zsh(verbs: list[_Verb]) -> str:
    summaries = "\n".join(f"        {quote(f'{verb.name}:{verb.summary}')}" for verb in verbs)
    cases = "\n".join(_zsh_case(verb) for verb in verbs)
    return f"""\
#compdef hold
# zsh completion for hold
_hold_sessions() {{
    local -a names
    names=(${{(f)"$({_NAMES})"}})
    compadd -a names
}}
_hold_actors() {{
    local -a names
    names=(${{(f)"$({_ACTORS_NAMES})"}})
    compadd -a names
}}
_hold() {{
    local -a verbs
    if [[ $words[2] == --as ]] && (( CURRENT > 2 )); then
        if (( CURRENT == 3 )); then
            _hold_actors
            return
        fi
        shift 2 words
        (( CURRENT -= 2 ))
    fi
    verbs=(
{summaries}
    )
    if (( CURRENT == 2 )); then
        _describe verb verbs
        return
    fi
    local verb=$words[2]
    shift words
    (( CURRENT-- ))
    case $verb in
{cases}
    esac
}}
if [[ ${{funcstack[1]}} == _hold ]]; then _hold "$@"; else compdef _hold hold; fi
"""


def _zsh_case(verb: _Verb) -> str:
    specs = []
    for option in verb.options:
        value = f":value:{_zsh_values(option.value)}" if option.value else ""
        specs += [quote(f"{flag}[{_zsh_help(option.help)}]{value}") for flag in option.flags]
    specs += [
        quote(f"{place}:argument:{_zsh_values(values)}")
        for place, values in enumerate(verb.places, 1)
    ]
    specs.append(quote(f"*:argument:{_zsh_values(verb.rest)}"))
    return f"        {verb.name}) _arguments {' '.join(specs)} ;;"


def _zsh_values(values: str) -> str:
    known = {_SESSIONS: "_hold_sessions", _ACTORS: "_hold_actors", _FILES: "_files"}
    return known.get(values) or f"({values.replace(':', chr(92) + ':')})"


def _zsh_help(text: str) -> str:
    return "".join(f"\\{c}" if c in "[]:\\" else c for c in text)


# -- fish -------------------------------------------------------------------------------------


def _fish(verbs: list[_Verb]) -> str:
    lines = [
        "# fish completion for hold",
        "function __hold_sessions",
        f"    {_NAMES}",
        "end",
        "function __hold_actors",
        f"    {_ACTORS_NAMES}",
        "end",
        "function __hold_place  # whether the word to complete is in this place behind this verb",
        "    set -l all (commandline -opc)",
        '    test "$all[2]" = --as; and set -e all[2..3]',
        "    set -l words (string match -v -- '-*' $all)",
        '    test (count $words) $argv[3] $argv[2]; and test "$words[2]" = $argv[1]',
        "end",
        "complete -c hold -f",
        "complete -c hold -n __fish_use_subcommand -l as -r -a '(__hold_actors)' -d 'act as'",
    ]
    for verb in verbs:
        lines.append(
            f"complete -c hold -n __fish_use_subcommand -a {verb.name} -d {_fish_q(verb.summary)}"
        )
        lines += [_fish_option(verb.name, option) for option in verb.options]
        lines += [
            f"complete -c hold -n '__hold_place {verb.name} {place} -eq' {_fish_values(values)}"
            for place, values in enumerate(verb.places, 2)
        ]
        after = len(verb.places) + 2
        lines.append(
            f"complete -c hold -n '__hold_place {verb.name} {after} -ge' {_fish_values(verb.rest)}"
        )
    return "\n".join(lines) + "\n"


def _fish_option(verb: str, option: _Option) -> str:
    flags = " ".join(
        f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags
    )
    # -x: a value from a list or by name is no file; -r alone would offer files with it.
    required = "-r" if option.value == _FILES else "-x"
    value = f" {required} {_fish_values(option.value)}" if option.value else ""
    when = f"-n '__fish_seen_subcommand_from {verb}'"
    return f"complete -c hold {when} {flags}{value} -d {_fish_q(option.help)}"


def _fish_values(values: str) -> str:
    known = {_SESSIONS: "-a '(__hold_sessions)'", _ACTORS: "-a '(__hold_actors)'", _FILES: "-F"}
    return known.get(values) or f"-a {_fish_q(values)}"


def _fish_q(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
