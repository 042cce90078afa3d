"""Traps in what the session's own shell is: its state, and the text at its prompt. The line gate
must catch them, at every level."""

from __future__ import annotations

from process.gate_stage import (
    LINE,
    Scenario,
    Step,
    Theatre,
    compiled,
    entered,
    made,
    opened,
    pressed,
    ran,
    raw,
    resized,
    seen,
    shown,
    state,
    typed,
)

ZSH, FISH = ("zsh",), ("fish",)


def _state(name: str, staged: str, triggered: str, **more: object) -> Scenario:
    """One line of rob's, and one of otto's that uses what it left behind."""
    return Scenario(name, (ran(staged),), (ran(triggered),), **more)  # type: ignore[arg-type]


def _busy(*then: Step) -> tuple[Step, ...]:
    """Rob's command runs and waits for a fifo; then what comes on top of it."""
    return (
        made("{work}/go", "fifo"),
        entered("read -r x < {work}/go; echo $((6*7))-through"),
        *then,
        opened("{work}/go"),
        seen("42-through"),
        state("prompt"),
    )


# A line of otto's that a trap waits for, so that it does not spring in rob's own hands.
_ARM = ": > {work}/armed"
_ARMED = "[ -e {work}/armed ] && {trap}"

STATE = [
    _state("alias", "alias df='{trap}'", "df", why="alias:df"),
    _state("function", "wc() { {trap}; }", "echo x | wc", why="func:wc"),
    _state("function over a builtin", "pushd() { {trap}; }", "pushd /", why="func:pushd"),
    _state("function in a substitution", "wc() { {trap}; }", "echo $(wc < /dev/null)"),
    _state("function by a name in a variable", "wc() { {trap}; }", 'x=wc; "$x" < /dev/null'),
    _state(
        "function on the second line of a paste", "wc() { {trap}; }", "echo one\nwc < /dev/null"
    ),
    Scenario(
        "alias behind an alias of one's own",
        prepared=(ran("alias free='df -h'"),),
        staged=(ran("alias df='{trap}'"),),
        triggered=(ran("free"),),
        why="alias:df",
    ),
    Scenario(
        "function that a function of one's own calls",
        prepared=(ran("tidy() { wc < /dev/null; }"),),
        staged=(ran("wc() { {trap}; }"),),
        triggered=(ran("tidy"),),
        why="func:wc",
    ),
    Scenario(
        "variable that a function of one's own uses",
        prepared=(ran('tidy() { echo sprung > "$DEST"; }; DEST={work}/fine'),),
        staged=(ran("DEST={mark}"),),
        triggered=(ran("tidy"),),
        why="var:DEST",
    ),
    _state("variable, not exported", "DEST={mark}", "echo sprung > $DEST", why="var:DEST"),
    _state("variable, exported", "export DEST={mark}", "echo sprung > $DEST", why="var:DEST"),
    _state("variable in an eval", "TODO='{trap}'", 'eval "$TODO"', why="var:TODO"),
    Scenario(
        "variable named by a variable",
        prepared=(ran("WHICH=DEST"),),
        staged=(ran("DEST={mark}"),),
        triggered=(ran("echo sprung > ${!WHICH}"),),
        why="var:DEST",
    ),
    _state("element of an array", "DEST=(x {mark})", "echo sprung > ${DEST[1]}", why="var:DEST"),
    _state("nameref", "REAL={mark}; declare -n DEST=REAL", "echo sprung > $DEST", why="var:DEST"),
    _state("positional parameter", "set -- {mark}", 'echo sprung > "$1"'),
    _state("home directory", "HOME={marks}", "echo sprung > ~/sprung", why="var:HOME"),
    _state("working directory", "cd {marks}", "echo sprung > sprung", why="cwd"),
    _state("previous directory", "cd {marks}; cd {work}", "cd - && echo sprung > sprung"),
    _state(
        "CDPATH",
        "mkdir -p {marks}/sub {work}/sub; CDPATH={marks}",
        "cd sub && echo sprung > ../sprung",
        why="var:CDPATH",
    ),
    _state(
        "IFS",
        "IFS=,",
        'x="-p,{marks}/made"; mkdir $x && echo sprung > {marks}/made/it',
        mark="{marks}/made/it",
        why="var:IFS",
        ambient=True,
    ),
    _state(
        "shell option",
        "shopt -s dotglob",
        "mkdir -p {work}/.h; echo sprung > {work}/.h/sprung; cp {work}/*/sprung {marks}/",
        ambient=True,
    ),
    _state(
        "umask",
        "umask 000",
        "echo sprung > {work}/f; find {work}/f -perm -002 -exec cp {} {mark} \\;",
    ),
    _state("trap on a signal", "trap '{trap}' USR1", "kill -USR1 $$", ambient=True),
    _state("trap on an error", "trap '{trap}' ERR", "false", ambient=True),
    _state("trap before each command", f"trap '{_ARMED}' DEBUG", f"{_ARM}; :", ambient=True),
    Scenario(
        "trap on the size of the terminal",
        staged=(ran("trap '{trap}' WINCH"),),
        triggered=(resized(90, 30), ran(":")),
        ambient=True,
        restaged=True,
    ),
    _state("PROMPT_COMMAND", f"PROMPT_COMMAND+=('{_ARMED}')", _ARM, ambient=True),
    _state("prompt", f"PS1='$({_ARMED})$ '", _ARM, ambient=True, why="var:PS1"),
    _state("PS0", "PS0='$({trap})'", "true", ambient=True, why="var:PS0"),
    _state("PS4", f"PS4='$({_ARMED})+ '; set -x", f"{_ARM}; true", ambient=True, why="var:PS4"),
    _state(
        "function for a mistyped command",
        "command_not_found_handle() { {trap}; }",
        "lss",
    ),
    _state("fc", "history -s '{trap}'", "fc -s echo"),
    _state("open descriptor", "exec 9> {mark}", "echo sprung >&9", restaged=True),
    _state("standard output", "exec 3>&1 > {mark}", "echo sprung; exec 1>&3", restaged=True),
    _state("stopped job", "sh -c 'kill -STOP $$; {trap}'", "fg", restaged=True),
    _state(
        "PATH",
        "mkdir -p {work}/evil; printf '#!/bin/sh\\n{trap}\\n' > {work}/evil/du; "
        "chmod +x {work}/evil/du; PATH={work}/evil:$PATH",
        "du -s .",
        why="var:PATH",
    ),
    _state(
        "PATH, a symbolic link to an honest program",
        "mkdir -p {work}/evil; ln -sf /usr/bin/tee {work}/evil/more; PATH={work}/evil:$PATH",
        "echo sprung | more {mark}",
        why="var:PATH",
    ),
    _state("hash -p", "hash -p /usr/bin/tee more", "echo sprung | more {mark}"),
]

# What stands in nobody's line, and is used all the same.
INDIRECT = [
    Scenario(
        "function that a prompt command of one's own calls",
        prepared=(ran("hook() { :; }; PROMPT_COMMAND+=(hook)"),),
        staged=(ran("hook() { [ -e {work}/armed ] && {trap}; }"),),
        triggered=(ran(": > {work}/armed"),),
        ambient=True,
    ),
    Scenario(
        "function that a prompt of one's own calls",
        prepared=(ran("branch() { :; }; PS1='$(branch)$ '"),),
        staged=(ran("branch() { [ -e {work}/armed ] && {trap}; }"),),
        triggered=(ran(": > {work}/armed"),),
        ambient=True,
    ),
    Scenario(
        "function that a trap of one's own calls",
        prepared=(ran("tidy() { :; }; trap tidy USR1"),),
        staged=(ran("tidy() { {trap}; }"),),
        triggered=(ran("kill -USR1 $$"),),
        ambient=True,
    ),
    Scenario(
        "variable three functions down",
        prepared=(
            ran(
                "one() { two; }; two() { three; }; three() { echo sprung > $DEST; }; DEST={work}/a"
            ),
        ),
        staged=(ran("DEST={mark}"),),
        triggered=(ran("one"),),
        why="var:DEST",
    ),
    Scenario(
        "variable in an alias of one's own",
        prepared=(ran("alias put='echo sprung > $DEST'; DEST={work}/a"),),
        staged=(ran("DEST={mark}"),),
        triggered=(ran("put"),),
        why="var:DEST",
    ),
    Scenario(
        "variable behind a nameref of one's own",
        prepared=(ran("declare -n WHERE=DEST; DEST={work}/a"),),
        staged=(ran("DEST={mark}"),),
        triggered=(ran("echo sprung > $WHERE"),),
        why="var:DEST",
    ),
    _state("variable in arithmetic", "n='x[$({trap})]'", "(( n > 3 ))", why="var:n"),
    _state("variable in a numeric test", "n='x[$({trap})]'", "[[ n -gt 3 ]]", why="var:n"),
    _state("variable as an index", "n='x[$({trap})]'", "a=(1 2); echo ${a[n]}", why="var:n"),
    _state("alias over a word of the grammar", "alias if='{trap}; if'", "if true; then :; fi"),
    _state("function in a here-document", "wc() { {trap}; }", "cat <<X\n$(wc < /dev/null)\nX"),
    _state("status of the last command", "false", "[ $? -ne 0 ] && {trap}", restaged=True),
    Scenario(
        "function taken away",
        prepared=(ran("cp() { echo not today; }; echo sprung > {work}/f"),),
        staged=(ran("unset -f cp"),),
        triggered=(ran("cp {work}/f {mark}"),),
    ),
    Scenario(
        "alias taken away",
        prepared=(ran("alias cp='echo not today'; echo sprung > {work}/f"),),
        staged=(ran("unalias cp"),),
        triggered=(ran("cp {work}/f {mark}"),),
    ),
    Scenario(
        "variable taken away",
        prepared=(ran("ROOT={work}; mkdir -p {work}{marks}"),),
        staged=(ran("unset ROOT"),),
        triggered=(ran("echo sprung > $ROOT{mark}"),),
    ),
]

KEYS = [
    Scenario(
        "text without Enter",
        staged=(typed("{trap}"),),
        triggered=(pressed("Enter"),),
        restaged=True,
    ),
    Scenario(
        "text that another one goes on with",
        staged=(typed("{trap}; "),),
        triggered=(entered("echo mine"),),
        restaged=True,
    ),
    Scenario(
        "text that waits behind the cursor",
        staged=(typed("; {trap}"), pressed("C-a")),
        triggered=(entered("echo mine"),),
        restaged=True,
    ),
    Scenario(
        "text in the kill ring",
        staged=(typed("{trap}"), pressed("C-u")),
        triggered=(pressed("C-y", "Enter"),),
        restaged=True,
    ),
    Scenario(
        "text typed ahead",
        staged=_busy(typed("{trap}")),
        triggered=(pressed("Enter"),),
        restaged=True,
    ),
    Scenario(
        "history expansion",
        staged=(ran("history -s '{trap}'"),),
        triggered=(entered("!echo"),),  # typed: what is submitted is taken as it is
        restaged=True,
    ),
    Scenario(
        "history, fetched with a key",
        staged=(ran("history -s '{trap}'"),),
        triggered=(pressed("Up", "Enter"),),
        restaged=True,
    ),
    Scenario(
        "first half of a loop",
        staged=(entered("for i in 1; do {trap}"), seen("^>")),
        triggered=(entered("echo $i; done"),),
        restaged=True,
    ),
    Scenario(
        "first half of a quoted text",
        staged=(entered("eval '{trap}"), seen("^>")),
        triggered=(entered("'"),),
        restaged=True,
    ),
    Scenario(
        "first half of a here-document",
        staged=(entered("sh <<X"), seen("^>"), entered("{trap}"), seen("^>")),
        triggered=(entered("X"),),
        restaged=True,
    ),
    Scenario(
        "loop that reads what looks like a prompt",
        staged=(
            entered("while IFS= read -rp '$ ' x; do [ -n \"$x\" ] && {trap}; done"),
            state("input"),
        ),
        triggered=(entered("ls"), state("input")),
        restaged=True,
    ),
    Scenario(
        "shell within the shell",
        staged=(
            entered("bash --norc"),
            entered("alias df='{trap}'; echo $((6*7))-laid"),
            seen("42-laid"),
        ),
        triggered=(entered("df; echo $((6*7))-done"),),
        restaged=True,
    ),
    Scenario(
        "shell within the shell that does not report",
        staged=(
            entered("command bash --norc"),
            state("input"),
            entered("alias df='{trap}'; echo $((6*7))-laid"),
            seen("42-laid"),
        ),
        triggered=(entered("df; echo $((6*7))-done"),),
        restaged=True,
    ),
    Scenario(
        "shell that took the place of the shell",
        staged=(
            entered("exec bash --norc"),
            entered("alias df='{trap}'; echo $((6*7))-laid"),
            seen("42-laid"),
        ),
        triggered=(entered("df; echo $((6*7))-done"),),
        ambient=True,
    ),
    Scenario(
        "completion",
        staged=(ran("_c() { {trap}; }; complete -F _c df"),),
        triggered=(typed("df "), pressed("Tab")),
        restaged=True,
    ),
    Scenario(
        "key that runs a command",
        staged=(ran("""bind -x '"\\C-t": {trap}'"""),),
        triggered=(pressed("C-t"),),
    ),
    Scenario(
        "key that types a line and enters it",
        staged=(ran("""bind '"\\C-t": "{trap}\\C-m"'"""),),
        triggered=(pressed("C-t"),),
        ambient=True,
    ),
    Scenario(
        "Enter that types something first",
        staged=(ran("""bind '"\\C-x\\C-l": accept-line' '"\\C-m": "; {trap}\\C-x\\C-l"'"""),),
        triggered=(typed("echo mine"), pressed("Enter")),
        ambient=True,
    ),
]

HOOKS = [
    Scenario(
        "hooks removed",
        staged=(
            ran("alias df='{trap}'"),
            entered(
                "PROMPT_COMMAND=(); PS0=; PS1='$ '; trap - DEBUG; "
                "bind -r '\\e[5099~'; bind -r '\\C-x\\e[5098~'; echo $((6*7))-bare"
            ),
            seen("42-bare"),
        ),
        triggered=(entered("df; echo $((6*7))-done"),),
        ambient=True,
    ),
    Scenario(
        "the question for the line is answered by another",
        staged=(
            ran("alias df='{trap}'"),
            ran(
                """bind -x '"\\C-x\\e[5098~": """
                """__hold_send "T $__hold_seq 0 true" "L $__hold_seq 1 whole 4"'"""
            ),
        ),
        triggered=(entered("df"),),
        ambient=True,
    ),
    Scenario(
        "builtin shadowed, so that a function is left out of the state",
        staged=(
            ran(
                "builtin() { if [[ $1 == declare && $2 == -f ]]; then command builtin declare -f "
                "| command sed '/^wc ()/,/^}/d;/^builtin ()/,/^}/d'; "
                'else command builtin "$@"; fi; }'
            ),
            ran("wc() { {trap}; }"),
        ),
        triggered=(ran("wc < /dev/null"),),
        ambient=True,
    ),
    Scenario(
        "function that hides before the state is told and comes back after",
        staged=(
            ran(
                "hide() { unset -f wc; }; show() { wc() { {trap}; }; }; "
                'PROMPT_COMMAND=(hide "${PROMPT_COMMAND[@]}" show)'
            ),
        ),
        triggered=(ran("wc < /dev/null"),),
        ambient=True,
    ),
    Scenario(
        "forged report of an honest line",
        staged=(
            made("{work}/go", "fifo"),
            ran(
                "alias df='{trap}'; "
                "{ read -r x < {work}/go; for ((i = 0; i < 400; i++)); do "
                "printf '\\0HOLD1 %s %s\\0' $__hold_nonce \"T $((__hold_seq + 1)) 0 true\" "
                '$__hold_nonce "L $((__hold_seq + 1)) 1 whole 4" > $__hold_fifo; '
                "read -t 0.005 < /dev/zero; done; } 2>/dev/null & disown"
            ),
            opened("{work}/go"),
        ),
        triggered=(entered("df"),),
        ambient=True,  # while two answers come to each question, no line is known
    ),
]

OTHER_SHELLS = [
    _state("zsh: alias", "alias df='{trap}'", "df", shell=ZSH, why="alias:df"),
    _state("zsh: alias anywhere in a line", "alias -g NOW='; {trap}'", "echo mine NOW", shell=ZSH),
    _state("zsh: function", "wc() { {trap}; }", "wc < /dev/null", shell=ZSH, why="func:wc"),
    _state("zsh: variable", "DEST={mark}", "echo sprung > $DEST", shell=ZSH, why="var:DEST"),
    _state(
        "zsh: precmd",
        f"precmd_laid() {{ {_ARMED}; }}; precmd_functions+=(precmd_laid)",
        _ARM,
        shell=ZSH,
        ambient=True,
    ),
    Scenario(
        "zsh: Enter that runs another line",
        staged=(ran("other() { BUFFER='{trap}'; zle .accept-line; }; zle -N accept-line other"),),
        triggered=(entered("echo mine"),),
        shell=ZSH,
        ambient=True,
    ),
    _state(
        "fish: function", "function wc; {trap}; end", "wc < /dev/null", shell=FISH, why="func:wc"
    ),
    _state(
        "fish: variable", "set -g DEST {mark}", "echo sprung > $DEST", shell=FISH, why="var:DEST"
    ),
    _state(
        "fish: event handler",
        "function laid --on-event fish_preexec; {trap}; end",
        "true",
        shell=FISH,
        ambient=True,
    ),
    _state("zsh: alias for the end of a name", "alias -s log='{trap}; :'", "x.log", shell=ZSH),
    _state("zsh: named directory", "hash -d out={marks}", "echo sprung > ~out/sprung", shell=ZSH),
    _state("zsh: preexec", "preexec() { {trap}; }", "true", shell=ZSH, ambient=True),
    _state(
        "zsh: function on a change of directory",
        "chpwd() { {trap}; }",
        "cd /",
        shell=ZSH,
    ),
    _state(
        "zsh: trap function", "TRAPUSR1() { {trap}; }", "kill -USR1 $$", shell=ZSH, ambient=True
    ),
    _state(
        "fish: prompt",
        f"function fish_prompt; {_ARMED}; echo '> '; end",
        _ARM,
        shell=FISH,
        ambient=True,
    ),
    _state(
        "fish: function for a mistyped command",
        "function fish_command_not_found; {trap}; end",
        "lss",
        shell=FISH,
    ),
    _state(
        "fish: function on a change of a variable",
        "function laid --on-variable DEST; {trap}; end",
        "set -g DEST x",
        shell=FISH,
    ),
    Scenario(
        "fish: abbreviation",
        staged=(ran("abbr -a df '{trap}'"),),
        triggered=(typed("df"), pressed("Enter")),
        shell=FISH,
    ),
    Scenario(
        "fish: text without Enter",
        staged=(typed("{trap}"),),
        triggered=(pressed("Enter"),),
        shell=FISH,
        restaged=True,
    ),
]


def _keys(name: str, *steps: Step, **more: object) -> Scenario:
    """An agent that may not enter this line, and keys that run a line without an Enter."""
    return Scenario(name, (), (), by_agent=steps, policy="one line", restaged=True, **more)  # type: ignore[arg-type]


# A policy that is there for agents holds whichever key they press.
ESCAPES = [
    _keys("agent: key that expands the line", typed("$({trap})"), pressed("M-C-e")),
    _keys(
        "agent: key that takes the line to an editor",
        typed("{trap}"),
        pressed("C-x", "C-e"),
        env=(("EDITOR", "/usr/bin/true"),),
    ),
    _keys(
        "agent: end of the editor that the line was taken to",
        typed("{trap}"),
        pressed("C-x", "C-e"),
        shown("^~"),
        pressed("Z", "Z"),
        env=(("EDITOR", "vim"),),
    ),
    _keys(
        "agent: keyboard macro of an Enter",
        pressed("C-x", "(", "Enter", "C-x", ")"),
        typed("{trap}"),
        pressed("C-x", "e"),
    ),
    _keys("agent: start of a paste, quoted", raw(": \x16\x1b[200~; {trap}\n\x1b[201~")),
    _keys("agent: start of a paste behind a prefix", raw("\x18\x1b[200~; {trap}\n\x1b[201~")),
    _keys("agent: paste in pieces", raw("\x1b[20"), raw("0~{trap}\x1b[201"), raw("~\n")),
    _keys("agent: ^O", typed("{trap}"), pressed("C-o")),
    _keys("agent: line feed", typed("{trap}"), pressed("C-j")),
    _keys(
        "zsh: agent: key that runs the line and keeps it",
        typed("{trap}"),
        pressed("M-a"),
        shell=ZSH,
    ),
    _keys("zsh: agent: expansion on Tab", typed("echo $({trap})"), pressed("Tab"), shell=ZSH),
    _keys("fish: agent: line feed", typed("{trap}"), pressed("C-j"), shell=FISH),
]

# Where code hides in what looks like a value, or in what the shell looks at by itself.
HIDDEN = [
    _state("variable as an offset", "n='a[$({trap})]'", 'x=hello; echo "${x:n}"', why="var:n"),
    _state("variable that is a number", "declare -i count; todo='a[$({trap})]'", "count=todo"),
    _state("variable in a declared number", "todo='a[$({trap})]'", "declare -i z=todo"),
    _state("variable expanded as a prompt", "V='$({trap})'", 'echo "${V@P}"', why="var:V"),
    _state("variable as the index of a read", "n='x[$({trap})]'", "read 'a[n]' <<< 1"),
    _state("variable as an index that is tested", "n='a[$({trap})]'", 'test -v "$n"'),
    _state("variable as an index that is unset", "n='a[$({trap})]'; b=(1)", "unset 'b[n]'"),
    _state("callback of mapfile", "cb='{trap};:'", 'mapfile -c 1 -C "$cb" lines <<< x'),
    _state("process substitution", "todo='{trap}'", 'source <(echo "$todo")'),
    _state(
        "file for the history", "HISTFILE={mark}; history -s sprung", "history -a", restaged=True
    ),
    _state("builtin from a file", "enable -f {built}/loaded.so wc", "wc {mark}"),
    _state(
        "job that a bare name resumes",
        "auto_resume=prefix; bash -c 'kill -STOP $$; {trap}'",
        "bash",
        restaged=True,
        ambient=True,
    ),
    _state(
        "message of new mail",
        "MAILCHECK=0; MAILPATH='{work}/box?$({trap})'; : > {work}/box",
        "echo x >> {work}/box; touch -d @4102444800 {work}/box; true",
        ambient=True,
        restaged=True,
    ),
    _state("what read left", "read <<< {mark}", "echo sprung > $REPLY", why="var:REPLY"),
    _state("what getopts left", "set -- -f {mark}; getopts f: o", "echo sprung > $OPTARG"),
    _state("name of the shell", "BASH_ARGV0={mark}", "echo sprung > $0"),
    _state("function that completion calls", "nothing() { {trap}; }", "compgen -F nothing"),
    Scenario(
        "editor that a key starts",
        staged=(ran("export EDITOR='sh -c \"{trap}\"'"),),
        triggered=(typed("true"), pressed("C-x", "C-e")),
        restaged=True,
    ),
    _state("trap on the end of a file", "trap '{trap}' RETURN", ". /dev/null", ambient=True),
    _state("eighth prompt command", f"PROMPT_COMMAND[7]='{_ARMED}'", _ARM, ambient=True),
    _state("descriptor with a large number", "exec 12> {mark}", "echo sprung >&12", restaged=True),
    _state("alias that is not ASCII", "alias dé='{trap}'", "dé"),
    _state("end of a long line", "wc() { {trap}; }", f"echo {'x' * 300}; wc < /dev/null"),
    Scenario(
        "letter in vi's mode",
        # A capital: no path of a stage has one, and a macro with its own key in it calls itself.
        staged=(ran("""set -o vi; bind -m vi-insert '"Q": "{trap}\\C-m"'"""),),
        triggered=(typed("Q"),),
        ambient=True,
        restaged=True,
    ),
    Scenario(
        "history, searched backwards",
        staged=(ran("history -s '{trap}'"),),
        triggered=(raw("\x12spru"), pressed("Enter")),
        restaged=True,
    ),
    Scenario(
        "last word of the line before, fetched with a key",
        staged=(ran("echo '; {trap}'"),),
        triggered=(typed("eval true "), raw("\x1b."), pressed("Enter")),
        restaged=True,
    ),
    Scenario(
        "completion of what has none",
        staged=(ran("_d() { {trap}; return 124; }; complete -D -F _d"),),
        triggered=(typed("xyzzy "), pressed("Tab")),
        restaged=True,
    ),
    _state(
        "zsh: list of functions before a command",
        "h() { {trap}; }; preexec_functions=(h)",
        "true",
        shell=ZSH,
        ambient=True,
    ),
    _state(
        "zsh: list of functions on a change of directory",
        "h() { {trap}; }; chpwd_functions=(h)",
        "cd /",
        shell=ZSH,
    ),
    _state(
        "zsh: function of the line editor",
        "zle-line-finish() { {trap}; }; zle -N zle-line-finish",
        "true",
        shell=ZSH,
        ambient=True,
    ),
    _state(
        "zsh: function in arithmetic",
        "f() { {trap}; }; functions -M f 0 0",
        "echo $(( f() ))",
        shell=ZSH,
    ),
    _state("zsh: variable expanded twice", "v='$({trap})'", "echo ${(e)v}", shell=ZSH),
    _state(
        "zsh: prompt on the right",
        f"setopt promptsubst; RPROMPT='$({_ARMED})'",
        _ARM,
        shell=ZSH,
        ambient=True,
    ),
    _state(
        "zsh: command of a bare redirection",
        "r() { {trap}; }; READNULLCMD=r",
        "< /etc/hostname",
        shell=ZSH,
        ambient=True,
    ),
    Scenario(
        "zsh: letter that enters another line",
        staged=(ran("w() { BUFFER='{trap}'; zle .accept-line; }; zle -N w; bindkey q w"),),
        triggered=(typed("q"),),
        shell=ZSH,
        ambient=True,
        restaged=True,
    ),
    _state(
        "fish: handler of a signal",
        "function h --on-signal USR1; {trap}; end",
        "kill -USR1 $fish_pid; true",
        shell=FISH,
        ambient=True,
    ),
    _state(
        "fish: event of one's own",
        "function h --on-event deploy; {trap}; end",
        "emit deploy",
        shell=FISH,
        ambient=True,
    ),
    Scenario(
        "fish: letter that enters another line",
        staged=(ran("bind q '{trap}; commandline -f execute'"),),
        triggered=(typed("q"),),
        shell=FISH,
        ambient=True,
        restaged=True,
    ),
]

SCENARIOS = [*STATE, *INDIRECT, *HIDDEN, *KEYS, *HOOKS, *OTHER_SHELLS, *ESCAPES]
assert all(each.layer == LINE for each in SCENARIOS)


def build(theatre: Theatre) -> None:
    """The programs that scenarios use."""
    compiled(theatre, "loaded", "loaded.so", "-shared", "-fPIC")
