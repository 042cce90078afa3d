# holdfast's side of an interactive fish (3.1 and later): says over a private FIFO when a command
# line begins and ends, with what status, where, and when the prompt is back.
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
set -g __hold_nonce
if string match -qr '^\d+$' -- "$HOLD_SHELL_NONCE_FD"
    # Through cat: a builtin of fish does not take its input from a descriptor by number.
    command cat <&$HOLD_SHELL_NONCE_FD | read -g __hold_nonce
end
set -e HOLD_SHELL_FIFO
set -e HOLD_SHELL_NONCE_FD

set -g __hold_seq 1 # of the next command line
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
    set -l rest (__hold_encode "$text")
    set -l pieces 0
    set -l bodies
    while test -n "$rest"
        set -a bodies "T $__hold_seq $pieces "(string sub -l 200 -- "$rest")
        set rest (string sub -s 201 -- "$rest")
        set pieces (math $pieces + 1)
    end
    __hold_send $bodies "B $__hold_seq $pieces $flag "(__hold_where) $argv[3..]
end

function __hold_begin --on-event fish_preexec
    set -g __hold_ran 1
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
    set -g __hold_seq (math $__hold_seq + 1)
end

# A line that does not parse. fish keeps it in its editor, shows no new prompt and leaves $status
# alone; the 2 is ours.
function __hold_unparsed --on-event fish_posterror
    set -l code $status
    __hold_report unparsed "$argv[1]" "E $__hold_seq 2 "(__hold_where)
    __hold_tty "D;2"
    set -g __hold_seq (math $__hold_seq + 1)
    __hold_send "P $__hold_seq $code "(__hold_where)
end

function __hold_prompt --on-event fish_prompt
    set -l code $status
    __hold_tty A
    __hold_send $__hold_ended "P $__hold_seq $code "(__hold_where)
    set -e __hold_ended
end

# ^C at the prompt: fish draws another one without the event for it.
function __hold_cancel --on-event fish_cancel
    __hold_send "P $__hold_seq 130 "(__hold_where)
end

if test -n "$__hold_nonce"
    __hold_send "R 0 $fish_pid fish $version"
else
    functions -e __hold_begin __hold_end __hold_unparsed __hold_prompt __hold_cancel
end
