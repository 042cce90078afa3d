# holdfast's side of an interactive bash (4.4 and later): says over a private FIFO when a command
# line begins and ends, with what status, where, and when the prompt is back.
#
# Read by bash in one of two ways, chosen by holdfast.adapters.shell.integrate():
#   bash --init-file THIS      a plain interactive shell; bash itself reads the distribution's
#                              bash.bashrc first, if it was built to
#   ENV=THIS bash --posix ...  a login shell, or --norc: the only start in which bash reads a file
#                              of ours and nothing else, and still knows that it is a login shell
# The user's files are then sourced here, as bash would have. They are never edited.
#
# What it deliberately does not do: keep a descriptor open between reports (a checkpoint would
# meet it), export anything, use a DEBUG trap (it belongs to the user, and does not fire for a
# function definition or a subshell), or wait for anybody.
#
# Names start with __hold_ because this file shares its name space with the user.

if [[ -o posix ]]; then
    builtin set +o posix
    builtin shopt -u inherit_errexit # the one setting that leaving posix mode does not undo
    [[ ${HISTFILE-} != "${HOME-}/.sh_history" ]] || HISTFILE=${HOME-}/.bash_history
    builtin unset ENV
    [[ -z ${HOLD_SHELL_ENV+set} ]] || builtin export ENV="$HOLD_SHELL_ENV"
fi

__hold_files=${HOLD_SHELL_FILES-rc}
__hold_fifo=${HOLD_SHELL_FIFO-}
__hold_fd=${HOLD_SHELL_NONCE_FD-}
__hold_nonce=
if [[ $__hold_fd == +([0-9]) ]]; then
    # Before the user's files, so that nothing started by them finds the secret in the pipe.
    IFS= builtin read -r __hold_nonce <&"$__hold_fd" || builtin :
    exec {__hold_fd}<&- # not `builtin exec`, which would open it again afterwards
fi
builtin unset HOLD_SHELL_FIFO HOLD_SHELL_NONCE_FD HOLD_SHELL_FILES HOLD_SHELL_ENV __hold_fd
__hold_seq=1   # of the next command line
__hold_count=0 # command lines bash has run, as of the last prompt
__hold_last=0  # exit status, as of the last prompt
__hold_hist=0  # bash's number for the last history entry, as of the last prompt
# Prompt escapes, expanded with @P: bash's own counters tell a command line from an empty Enter.
builtin declare -r __hold_number='\#' __hold_history='\!'
# ${ ...-}: these strings may be exported by the user and meet a child shell that knows none of it.
# The braces keep `set -x` quiet; PS0 is expanded once for every command line that parses.
builtin declare -r __hold_ps0='$({ __hold_begin; } 2>/dev/null)\e]133;C;hold=${__hold_seq-}\a'
builtin declare -r __hold_ps1='\[\e]133;B;hold=${__hold_seq-}\a\]'
builtin declare -r __hold_fifo __hold_nonce
builtin declare +x __hold_seq __hold_count __hold_last __hold_hist __hold_fifo __hold_nonce

# __hold_send BODY...: each body becomes one record in one write. Bash writes line by line through
# a buffer of 1024 bytes, so a record has no newline in it and is shorter than that; then the
# kernel keeps it whole. A FIFO that is not drained (no daemon just now) might be full, and bash
# cannot write without blocking: dd can, and loses the report rather than the prompt. Starting dd
# costs more than all the rest, so a reader that is merely a little late gets some 0.3 ms first.
__hold_send() {
    [[ -p $__hold_fifo ]] || builtin return 0 # `<>` would make a plain file of it
    local __hold_body __hold_try=30
    {
        while builtin read -t 0 && (( __hold_try -= 1 )); do builtin :; done
        if (( ! __hold_try )); then
            for __hold_body; do
                builtin printf '\0HOLD1 %s %s\0' "$__hold_nonce" "$__hold_body" |
                    builtin command -p dd bs=4096 conv=notrunc,nocreat oflag=nonblock \
                        of="$__hold_fifo" status=none
            done
        else
            for __hold_body; do
                builtin printf '\0HOLD1 %s %s\0' "$__hold_nonce" "$__hold_body"
            done
        fi
    } 2>/dev/null 0<>"$__hold_fifo" 1>&0
    builtin return 0
}

# __hold_encode TEXT: the text without newlines, in __hold_encoded.
__hold_encode() {
    __hold_encoded=${1//[%]/%25}
    __hold_encoded=${__hold_encoded//$'\n'/%0A}
}

# The working directory, encoded; empty when it does not fit a record (then the kernel is asked).
__hold_where() {
    __hold_encode "${PWD-}"
    (( ${#__hold_encoded} <= 200 )) && builtin return
    local LC_ALL=C # bytes, not characters, from here on
    (( ${#__hold_encoded} <= 800 )) || __hold_encoded=
}

# Runs in the subshell of PS0: nothing here can change the user's shell.
__hold_begin() {
    builtin set +aefuvx
    builtin trap - DEBUG ERR
    __hold_where
    local __hold_cwd=$__hold_encoded __hold_flag=whole __hold_text __hold_pieces=0
    local HISTTIMEFORMAT=
    __hold_text=$(builtin history 1)
    LC_ALL=C
    # "  123* text". If the history has not grown since the prompt, its last entry is not this
    # command, unless history leaves out repetitions and nothing else.
    if [[ $__hold_text =~ ^\ *[0-9]+[*\ ]\  ]] &&
        { (( ${__hold_history@P} > __hold_hist )) ||
            [[ ${HISTCONTROL-} == @(ignoredups|erasedups) && -z ${HISTIGNORE-} ]]; }; then
        __hold_text=${__hold_text#"${BASH_REMATCH[0]}"}
    else
        __hold_text='' __hold_flag=unknown
    fi
    if (( ${#__hold_text} > 16384 )); then
        __hold_text=${__hold_text:0:16384} __hold_flag=cut
    fi
    __hold_encode "$__hold_text"
    builtin set --
    while [[ -n $__hold_encoded ]]; do
        builtin set -- "$@" "T $__hold_seq $__hold_pieces ${__hold_encoded:0:800}"
        __hold_encoded=${__hold_encoded:800}
        (( __hold_pieces += 1 ))
    done
    __hold_send "$@" "B $__hold_seq $__hold_pieces $__hold_flag $__hold_cwd"
}

# __hold_close STATUS: notes whether a command line has ended since the last prompt: its report in
# __hold_report, its mark in __hold_mark. Does nothing the second time.
__hold_close() {
    local __hold_count_now=${__hold_number@P} __hold_hist_now=${__hold_history@P}
    __hold_report=() __hold_mark=
    # Bash says 1 for one entry and for none.
    [[ $__hold_hist_now != 1 || -n $(builtin history 1) ]] || __hold_hist_now=0
    __hold_where
    if [[ $__hold_count_now == "$__hold_count" ]]; then
        # Nothing ran. An empty line keeps the status, ^C makes it 130; a line that does not parse
        # makes it 2, and goes to the history as a comment also does.
        [[ $1 == 2 ]] && { [[ $__hold_last != 2 ]] ||
            { (( __hold_hist_now > __hold_hist )) && ! __hold_is_comment; }; } ||
            { __hold_last=$1 __hold_hist=$__hold_hist_now; builtin return 0; }
        __hold_report=("B $__hold_seq 0 unparsed $__hold_encoded")
    fi
    __hold_report+=("E $__hold_seq $1 $__hold_encoded")
    __hold_mark=$'\e]133;D;'$1$';hold='$__hold_seq$'\a'
    __hold_count=$__hold_count_now __hold_last=$1 __hold_hist=$__hold_hist_now
    (( __hold_seq += 1 ))
}

__hold_is_comment() {
    local HISTTIMEFORMAT=
    [[ $(builtin history 1) =~ ^\ *[0-9]+[*\ ]\ \ *# ]]
}

__hold_tty() {
    { builtin printf '%s' "$1" >/dev/tty; } 2>/dev/null || builtin :
}

# First in PROMPT_COMMAND: the end of a command, before the user's own prompt commands print.
__hold_end() {
    local __hold_status=$? __hold_flags=$-
    {
        local -
        builtin set +aefuvx
    } 2>/dev/null
    # With no prompt commands of the user the last hook does it all in one go. If the user put
    # something before this hook $? is no longer the command's; the last hook still sees it.
    if [[ ${#PROMPT_COMMAND[@]} -ne 2 && ${PROMPT_COMMAND[0]-} == __hold_end ]] ||
        (( ! __hold_arrays )); then
        local -a __hold_report
        local __hold_mark __hold_encoded
        __hold_close "$__hold_status"
        if [[ -n $__hold_mark ]]; then
            # The mark is on its way before the report: who has the report can wait for the mark.
            __hold_tty "$__hold_mark"
            __hold_send "${__hold_report[@]}"
        fi
    fi
    # An old bash runs all in one string, where the next command sees what this returns; except
    # under `set -e`, where it would end the shell. A new one restores the status itself.
    (( __hold_arrays )) || [[ $__hold_flags == *e* ]] || builtin return "$__hold_status"
}

# Last in PROMPT_COMMAND: about to show the prompt.
__hold_prompt() {
    local __hold_status=$? __hold_flags=$-
    {
        local -
        builtin set +aefuvx
    } 2>/dev/null
    (( __hold_arrays )) || __hold_status=$__hold_last
    local -a __hold_report
    local __hold_mark __hold_encoded
    __hold_close "$__hold_status"
    # What the user's commands and themes overwrite, theirs in front, comes back.
    [[ ${PS0-} == *"$__hold_ps0" ]] || PS0=${PS0-}$__hold_ps0
    [[ ${PS1-} == *"$__hold_ps1" ]] || PS1=${PS1-}$__hold_ps1
    if (( __hold_arrays )) && [[ ${PROMPT_COMMAND[0]-} != __hold_end ]]; then
        PROMPT_COMMAND=(__hold_end "${PROMPT_COMMAND[@]}")
    fi
    __hold_tty "$__hold_mark"$'\e]133;A;hold='$__hold_seq$'\a'
    __hold_send "${__hold_report[@]}" "P $__hold_seq $__hold_status $__hold_encoded"
    (( __hold_arrays )) || [[ $__hold_flags == *e* ]] || builtin return "$__hold_status"
}

builtin readonly -f __hold_send __hold_encode __hold_where __hold_begin __hold_close \
    __hold_is_comment __hold_tty __hold_end __hold_prompt

# The user's files, at the top level: what they declare must not become local to a function.
# `|| :` so that a file whose last line is false does not end a shell under `set -e`.
case $__hold_files in
    login)
        [[ ! -r /etc/profile ]] || . /etc/profile || builtin :
        for __hold_files in "${HOME-}"/.bash_profile "${HOME-}"/.bash_login "${HOME-}"/.profile; do
            [[ -r $__hold_files ]] || continue
            . "$__hold_files" || builtin :
            break
        done
        ;;
    rc) [[ ! -r ${HOME-}/.bashrc ]] || . "${HOME-}/.bashrc" || builtin : ;;
    file:*) [[ ! -r ${__hold_files#file:} ]] || . "${__hold_files#file:}" || builtin : ;;
esac

if [[ -n $__hold_nonce ]]; then
    if (( BASH_VERSINFO[0] > 5 || (BASH_VERSINFO[0] == 5 && BASH_VERSINFO[1] >= 1) )); then
        builtin declare -r __hold_arrays=1
        [[ -n ${PROMPT_COMMAND[*]-} ]] || PROMPT_COMMAND=()
        PROMPT_COMMAND=(__hold_end ${PROMPT_COMMAND[@]+"${PROMPT_COMMAND[@]}"} __hold_prompt)
    else
        # One string. ${...:+...}: the user may export it, and a child shell has no such function.
        builtin declare -r __hold_arrays=0
        PROMPT_COMMAND='${__hold_nonce:+__hold_end}'$'\n'${PROMPT_COMMAND-}$'\n''${__hold_nonce:+__hold_prompt}'
    fi
    builtin declare +x __hold_arrays
    __hold_send "R 0 $$ bash $BASH_VERSION"
fi
builtin unset __hold_files __hold_encoded
