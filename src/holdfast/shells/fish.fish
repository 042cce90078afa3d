# holdfast's side of an interactive fish (3.1 and later): says over a private FIFO when a command
# line begins and ends, with what status, where, and when the prompt is back. Before each prompt it
# writes its own state (environment, functions, ...) to a private file, and on a private key it says
# what stands unsubmitted in the line editor. holdfast.adapters.shell.state_file says how.
#
# Sourced with `fish --init-command`, after the user's own configuration, which is never edited.
#
# What it deliberately does not do: keep the FIFO open between reports (a checkpoint would meet
# it), export anything, or wait for anybody. fish opens a FIFO only in a way that may block, so
# the write is dd's, which loses a report rather than the prompt. fish cannot close a descriptor
# it was given: the pipe the secret came through stays, empty and at its end.
#
# Names start with __hold_ because this file shares its name space with the user.

set -g __hold_fifo $HOLD_SHELL_FIFO
set -g __hold_state $HOLD_SHELL_STATE
set -g __hold_nonce
if string match -qr '^\d+$' -- "$HOLD_SHELL_NONCE_FD"
    # Through cat: a builtin of fish does not take its input from a descriptor by number.
    command cat <&$HOLD_SHELL_NONCE_FD | read -g __hold_nonce
end
set -g __hold_seq 1 # of the next command line
set -g __hold_serial 0 # of the last written state
# Started in a shell that reports, by this command line of it, this one goes on with its numbers.
set -g __hold_below 0
string match -qr '^\d+$' -- "$HOLD_SHELL_BELOW"; and set __hold_below $HOLD_SHELL_BELOW
string match -qr '^\d+$' -- "$HOLD_SHELL_NUMBER"; and set __hold_seq $HOLD_SHELL_NUMBER
string match -qr '^\d+$' -- "$HOLD_SHELL_SERIAL"; and set __hold_serial $HOLD_SHELL_SERIAL
set -g __hold_next 0 # the number to go on with, after a shell that was started in this one
set -e HOLD_SHELL_FIFO
set -e HOLD_SHELL_STATE
set -e HOLD_SHELL_NONCE_FD
set -e HOLD_SHELL_FILES
set -e HOLD_SHELL_BELOW
set -e HOLD_SHELL_NUMBER
set -e HOLD_SHELL_SERIAL

set -g __hold_ran 0 # whether it has begun

# Each body becomes one record. What printf writes in one piece dd hands on in one, and four
# records of at most 900 bytes are small enough for the kernel to keep them together.
function __hold_send
    test -p "$__hold_fifo"; or return 0
    while set -q argv[1]
        set -l last (math min 4,(count $argv))
        printf "\0HOLD1 $__hold_nonce %s\0" $argv[1..$last] |
            command dd bs=4096 conv=notrunc,nocreat oflag=nonblock of=$__hold_fifo status=none 2>/dev/null
        set -e argv[1..$last]
    end
end

function __hold_tty
    printf '\e]133;%s;hold=%s\a' $argv[1] $__hold_seq >/dev/tty 2>/dev/null
end

# The text without newlines, except that those at its end are lost.
function __hold_encode
    set -l text (string replace -a % %25 -- $argv[1] | string collect)
    string replace -a \n %0A -- $text | string collect
end

# The working directory, encoded; empty when it does not fit a record (then the kernel is asked).
function __hold_where
    set -l cwd (__hold_encode "$PWD")
    test (string length -- "$cwd") -le 200; and echo -n "$cwd"
end

# __hold_report FLAG TEXT [BODY]: the beginning of a command line, and what follows on it.
# Characters may have four bytes, so 200 of them are sure to fit a record.
function __hold_report
    set -l flag $argv[1]
    set -l text $argv[2]
    if test (string length -- "$text") -gt 16384
        set text (string sub -l 16384 -- "$text" | string collect)
        test $flag = whole; and set flag cut
    end
    set -l bodies (__hold_pieces "$text")
    __hold_send $bodies "B $__hold_seq "(count $bodies)" $flag "(__hold_where) $argv[3..]
end

# The bodies that carry a text, one to a line.
function __hold_pieces
    set -l rest (__hold_encode "$argv[1]")
    set -l pieces 0
    while test -n "$rest"
        echo "T $__hold_seq $pieces "(string sub -l 200 -- "$rest")
        set rest (string sub -s 201 -- "$rest")
        set pieces (math $pieces + 1)
    end
end

# __hold_write_state [whole]: the state, by builtins only; but fish would complain to the terminal
# of a disk that is full, so the write is dd's. It goes over what the file held: what the old state
# leaves behind the END of the new one is nobody's.
function __hold_write_state
    test -f "$__hold_state"; or return 0
    set -g __hold_serial (math $__hold_serial + 1)
    set -l pairs # fish has no way to print them that can be read back
    for name in (set -nx)
        set -a pairs $name "$$name"
    end
    begin
        printf '%s\0' '' "HOLDSTATE1 $__hold_nonce $__hold_serial $__hold_seq fish" \
            'cwd 1' "$PWD" 'umask 1' "$umask" \
            "exported "(count $pairs) $pairs 'abbreviations 1'
        abbr --show
        printf '\0%s\0' 'handlers 1'
        functions --handlers
        printf '\0%s\0' 'fishjobs 1'
        jobs
        printf '\0variable 2\0%s\0%s\0' fish_function_path "$fish_function_path" \
            CDPATH "$CDPATH"
        # What no program inherits, too; of the history fish would print more than a prompt may take.
        printf 'bindings 1\0'
        bind --user
        printf '\0fishvariables 1\0'
        set -L -g | string match -v 'history *'
        set -L -U
        printf '\0'
        __hold_write_functions $argv
        printf '%s\0' "END $__hold_nonce $__hold_serial"
    end | command dd bs=65536 conv=notrunc,nocreat of=$__hold_state status=none 2>/dev/null
end

# fish lists functions it could load besides those it has, and loads one to show it. Shown are those
# that no file can have brought, and those a command line has named since. With many of them
# their names alone are written, unless the whole state is asked for.
function __hold_write_functions
    set -l names (functions -na)
    if test "$names" != "$__hold_names"
        set -g __hold_names $names
        set -l files (string replace -r '.*/(.*)\.fish$' '$1' -- $fish_function_path/*.fish)
        set -g __hold_own (string match -rv '^(?:__hold_.*|__fish_.*|'(
            string join '|' -- (string escape --style=regex -- $files))')$' -- $names)
    end
    set -l shown $__hold_own
    for name in $__hold_named
        contains -- $name $names; and not contains -- $name $shown; and set -a shown $name
    end
    if test (count $shown) -gt 20 -a "$argv[1]" != whole
        printf 'names 1\0'
        string join \n -- $shown
        printf '\0'
    else
        printf 'bodies %s\0' (math 2 x (count $shown))
        for name in $shown
            printf '%s\0' $name
            functions $name
            printf '\0'
        end
    end
end

# On the private key: the whole state, then the line as it stands in the editor.
function __hold_probed
    __hold_write_state whole
    __hold_edited whole
end

# On the gate's private keys. Before an Enter, the line alone; before a paste also whether this mode
# takes it as text; and to empty the line, without the key that a user may have bound.
function __hold_gated_paste
    set -l flag whole
    string match -q '*__fish_start_bracketed_paste*' -- (bind -M $fish_bind_mode \e\[200~ 2>/dev/null)
    and set flag whole,paste
    __hold_edited $flag
end

function __hold_emptied
    commandline -r ''
end

# __hold_edited FLAG: the line as it stands in the editor.
function __hold_edited
    set -l text (commandline -b | string collect)
    set -l point (commandline -C)
    set -l flag $argv[1]
    if test (string length -- "$text") -gt 16384
        set text (string sub -l 16384 -- "$text" | string collect)
        set flag cut
    end
    set -l bodies (__hold_pieces "$text")
    __hold_send $bodies "L $__hold_seq "(count $bodies)" $flag $point"
end

function __hold_begin --on-event fish_preexec
    set -g __hold_ran 1
    # A function that has a file may be another one from here on.
    for name in (string match -rag '(?:^|[\s;&|(])(?:function|alias|functions\s+(?:-e|--erase|-c|--copy))\s+(?:-\S+\s+)*([^\s=;]+)' -- "$argv[1]")
        contains -- $name $__hold_named; or set -ga __hold_named $name
    end
    __hold_report whole "$argv[1]"
    __hold_tty C
end

# The report of the end goes out with that of the prompt, a moment later: one dd instead of two.
# The mark does not wait: what the user's own hooks print is not output of the command.
function __hold_end --on-event fish_postexec
    set -l code $status
    test $__hold_ran = 1; or return
    __hold_tty "D;$code"
    set -g __hold_ended "E $__hold_seq $code "(__hold_where)
    set -g __hold_ran 0
    set -g __hold_seq (math "max($__hold_seq + 1, $__hold_next)")
end

# A line that does not parse. fish keeps it in its editor, shows no new prompt and leaves $status
# alone; the 2 is ours.
function __hold_unparsed --on-event fish_posterror
    set -l code $status
    __hold_report unparsed "$argv[1]" "E $__hold_seq 2 "(__hold_where)
    __hold_tty "D;2"
    set -g __hold_seq (math $__hold_seq + 1)
    __hold_write_state
    __hold_send "P $__hold_seq $code "(__hold_where)
end

function __hold_prompt --on-event fish_prompt
    set -l code $status
    __hold_tty A
    __hold_write_state
    __hold_send $__hold_ended "P $__hold_seq $code "(__hold_where)
    set -e __hold_ended
end

# ^C at the prompt: fish draws another one without the event for it.
function __hold_cancel --on-event fish_cancel
    __hold_write_state
    __hold_send "P $__hold_seq 130 "(__hold_where)
end

# __hold_nested PROGRAM [ARGUMENT...]: as typed, but if it starts an interactive shell, that reports
# too (nested.sh): with the same secret, on from the same numbers. Afterwards this shell goes on from
# where that one was, as the state file says. The secret comes by standard input: fish gives a
# command no other descriptor.
function __hold_nested
    # A command that names something to run cannot be one; the rest nested.sh looks at.
    if status is-command-substitution; or not isatty stdin; or not isatty stdout; or not test -r $__hold_start_nested
        or begin
            test $argv[1] != su
            and not string match -qr -- '^(.*/)?(bash|zsh|fish)$|^-[^c]' $argv[-1]
        end
        command $argv
        return
    end
    printf '%s\n' $__hold_nonce |
        HOLD_SHELL_FIFO=$__hold_fifo HOLD_SHELL_STATE=$__hold_state HOLD_SHELL_NONCE_FD=0 \
        HOLD_SHELL_BELOW=$__hold_seq HOLD_SHELL_SERIAL=$__hold_serial \
        HOLD_SHELL_NUMBER=(math "max($__hold_seq + 1, $__hold_next)") \
        command /bin/sh $__hold_start_nested $argv
    set -l code $status
    set -l state (string split0 <$__hold_state 2>/dev/null)
    set -l head (string split ' ' -- $state[2])
    if test "$head[1..2]" = "HOLDSTATE1 $__hold_nonce" -a "$head[3]" -gt $__hold_serial 2>/dev/null
        # That number may have been used by what ended it.
        set -g __hold_serial $head[3]
        set -g __hold_next (math $head[4] + 1)
    end
    return $code
end

if test -n "$__hold_nonce"
    set -g __hold_start_nested (dirname (status filename))/nested.sh
    # By name, as they are typed.
    for name in bash zsh fish su env
        command -q $name; and not functions -q $name
        and eval "function $name --wraps $name; __hold_nested $name \$argv; end"
    end
    set -e name
    for mode in default insert visual replace replace_one
        bind -M $mode \e\[5099~ __hold_probed
        bind -M $mode \e\[5095~ '__hold_edited whole'
        bind -M $mode \e\[5093~ __hold_gated_paste
        bind -M $mode \e\[5091~ __hold_emptied
    end
    # fish drops a tab that is pasted, so another line would run than the one that was given.
    bind -M paste \t 'commandline -i \t'
    __hold_send "R $__hold_below $fish_pid fish $version"
else
    functions -e __hold_begin __hold_end __hold_unparsed __hold_prompt __hold_cancel
end
