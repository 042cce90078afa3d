# holdfast's side of an interactive bash (4.4 and later): says over a private FIFO when a command
# line begins and ends, with what status, where, and when the prompt is back. Before each prompt it
# writes its own state (environment, aliases, functions, ...) to a private file, and on a private
# key it says what stands unsubmitted in the line editor. holdfast.adapters.shell.state_file says how.
#
# Read by bash in one of two ways, chosen by holdfast.adapters.shell.integration.integrate():
#   bash --init-file THIS      a plain interactive shell; bash itself reads the distribution's
#                              bash.bashrc first, if it was built to
#   ENV=THIS bash --posix ...  a login shell, or --norc: the only start in which bash reads a file
#                              of ours and nothing else, and still knows that it is a login shell
# The user's files are then sourced here, as bash would have. They are never edited.
#
# What it deliberately does not do: keep a descriptor open between reports (a checkpoint would
# meet it), export anything, make a file (the state file is there or it is not), use a DEBUG trap (it belongs to the user, and does not fire for a
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
__hold_state=${HOLD_SHELL_STATE-}
__hold_fd=${HOLD_SHELL_NONCE_FD-}
__hold_nonce=
if [[ $__hold_fd == +([0-9]) ]]; then
    # Before the user's files, so that nothing started by them finds the secret in the pipe.
    IFS= builtin read -r __hold_nonce <&"$__hold_fd" || builtin :
    exec {__hold_fd}<&- # not `builtin exec`, which would open it again afterwards
fi
__hold_seq=1    # of the next command line
__hold_serial=0 # of the last written state
# Started in a shell that reports, by this command line of it, this one goes on with its numbers.
__hold_below=0
[[ ${HOLD_SHELL_BELOW-} != +([0-9]) ]] || __hold_below=$HOLD_SHELL_BELOW
[[ ${HOLD_SHELL_NUMBER-} != +([0-9]) ]] || __hold_seq=$HOLD_SHELL_NUMBER
[[ ${HOLD_SHELL_SERIAL-} != +([0-9]) ]] || __hold_serial=$HOLD_SHELL_SERIAL
builtin unset HOLD_SHELL_FIFO HOLD_SHELL_STATE HOLD_SHELL_NONCE_FD HOLD_SHELL_FILES HOLD_SHELL_ENV \
    HOLD_SHELL_BELOW HOLD_SHELL_NUMBER HOLD_SHELL_SERIAL
builtin unset __hold_fd
__hold_count=0 # command lines bash has run, as of the last prompt
__hold_last=0  # exit status, as of the last prompt
__hold_hist=0  # bash's number for the last history entry, as of the last prompt
__hold_next=0   # the number to go on with, after a shell that was started in this one
__hold_big=0    # whether the functions are too many to write their bodies at every prompt
__hold_report=() # what is to be sent with the prompt's report
__hold_lines=(0) # of the command line that runs: PS0 is expanded for each. `set -a` exports no array
__hold_mark_c=  # the mark in front of its output
__hold_exactly=0 # whether the next command line is taken without history expansion
__hold_histchars=() # and the user's own setting of it meanwhile
# Prompt escapes, expanded with @P: bash's own counters tell a command line from an empty Enter.
builtin declare -r __hold_number='\#' __hold_history='\!'
# ${ ...-}: these strings may be exported by the user and meet a child shell that knows none of it.
# The braces keep `set -x` quiet; PS0 is expanded once for every command line that parses.
builtin declare -r __hold_ps0='$({ __hold_begin; } 2>/dev/null)${__hold_mark_c+${__hold_mark_c:64*__hold_lines[0]++:64}}'
builtin declare -r __hold_ps1='\[\e]133;B;hold=${__hold_seq-}\a\]'
# First in PROMPT_COMMAND. In braces here and below: `set -x` would show the call, and a DEBUG trap
# that prints would print for it.
builtin declare -r __hold_first='{ __hold_end; } >/dev/null 2>&1'
# The same for a bash that takes PROMPT_COMMAND for one string. ${...:+...}: the user may export it,
# and a child shell has no such function.
builtin declare -r __hold_string_first='{ ${__hold_nonce:+__hold_end}; } >/dev/null 2>&1'
builtin declare -r __hold_string_last='{ ${__hold_nonce:+__hold_prompt}; } >/dev/null 2>&1'
# At the top level, because a function does not see the traps DEBUG, ERR and RETURN. The file is
# opened for reading first and then by its descriptor, which never makes one. It is written over,
# not cut: on a disk that is three times as fast, and what the old state left behind the END of
# the new one is nobody's. Should the file not open, the prompt is reported all the same.
builtin declare -r __hold_show='{ __hold_prompt; } >/dev/null 2>&1
{ { builtin trap -p; __hold_shown "$@"; } 0<"$__hold_state" 1<>/proc/self/fd/0 || __hold_ring; } >/dev/null 2>&1'
builtin declare -r __hold_fifo __hold_state __hold_nonce
builtin declare +x __hold_seq __hold_count __hold_last __hold_hist __hold_fifo __hold_nonce \
    __hold_state __hold_serial __hold_big __hold_report __hold_first __hold_string_first \
    __hold_string_last __hold_show __hold_lines __hold_mark_c \
    __hold_exactly __hold_histchars __hold_below __hold_next

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
            # In a substitution: a pipeline would stand among the user's jobs until the next prompt.
            builtin : "$(for __hold_body; do
                builtin printf '\0HOLD1 %s %s\0' "$__hold_nonce" "$__hold_body" |
                    builtin command -p dd bs=4096 conv=notrunc,nocreat oflag=nonblock \
                        of="$__hold_fifo" status=none
            done)"
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
    (( __hold_seq += 1, __hold_seq = __hold_next > __hold_seq ? __hold_next : __hold_seq ))
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
    if [[ ${#PROMPT_COMMAND[@]} -ne 2 && ${PROMPT_COMMAND[0]-} == "$__hold_first" ]] ||
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

# Last in PROMPT_COMMAND: about to show the prompt. The report of it waits for the state.
__hold_prompt() {
    local __hold_status=$? __hold_flags=$-
    {
        local -
        builtin set +aefuvx
    } 2>/dev/null
    (( __hold_arrays )) || __hold_status=$__hold_last
    local __hold_mark __hold_encoded
    __hold_close "$__hold_status"
    __hold_lines=(0) __hold_mark_c=$'\e]133;C;hold='$__hold_seq$'\a'
    __hold_expand_again
    # What the user's commands and themes overwrite, theirs in front, comes back.
    [[ ${PS0-} == *"$__hold_ps0" ]] || PS0=${PS0-}$__hold_ps0
    [[ ${PS1-} == *"$__hold_ps1" ]] || PS1=${PS1-}$__hold_ps1
    if (( __hold_arrays )) && [[ ${PROMPT_COMMAND[0]-} != "$__hold_first" ]]; then
        PROMPT_COMMAND=("$__hold_first" "${PROMPT_COMMAND[@]}")
    fi
    __hold_tty "$__hold_mark"$'\e]133;A;hold='$__hold_seq$'\a'
    __hold_report+=("P $__hold_seq $__hold_status $__hold_encoded")
    if (( ! __hold_arrays )); then
        { builtin trap -p; __hold_write_state "$__hold_flags"; } \
            2>/dev/null 0<"$__hold_state" 1<>/proc/self/fd/0
        __hold_ring
    fi
    (( __hold_arrays )) || [[ $__hold_flags == *e* ]] || builtin return "$__hold_status"
}

# Standard output is the state file; the traps have been written.
__hold_shown() {
    local __hold_flags=$-
    local -
    builtin set +aefuvx
    __hold_write_state "$__hold_flags" '' "$@"
    __hold_ring
}

__hold_ring() {
    local -
    builtin set +aefuvx
    __hold_send "${__hold_report[@]}"
    __hold_report=()
}

# __hold_write_state FLAGS [whole|"" [ARGUMENT...]]: the state, by builtins only. `jobs` would take the notice of a
# job that ended or stopped away from the user; the ways it is used here do not.
__hold_write_state() {
    (( __hold_serial += 1 ))
    builtin printf '\0HOLDSTATE1 %s %s %s bash\0' "$__hold_nonce" "$__hold_serial" "$__hold_seq"
    builtin printf 'cwd 1\0%s\0flags 1\0%s\0options 1\0%s\0' \
        "${PWD-}" "$1" "${SHELLOPTS-}:${BASHOPTS-}"
    builtin printf 'umask 1\0'
    builtin umask
    builtin printf '\0bash 1\0'
    builtin : "${BASH_ARGV0-}" # has its value from when it was looked at last
    builtin declare -p
    builtin printf '\0bashaliases 1\0'
    builtin alias -p
    builtin printf '\0bashjobs 2\0'
    builtin jobs -rl
    builtin printf '\0'
    builtin jobs -sp
    builtin printf '\0hash 1\0'
    builtin hash -l
    builtin printf '\0builtins 1\0'
    builtin enable # compgen -A enabled would never look again
    builtin printf '\0bindings 1\0'
    __hold_write_bindings 2>/dev/null
    builtin printf '\0'
    # The user's $1 and so on. A function that a key calls does not see them.
    (( $# < 2 )) || builtin printf 'positional 1\0%s\0' "${*:3}"
    __hold_write_variables
    __hold_write_functions "${2-}"
    builtin printf 'END %s %s\0' "$__hold_nonce" "$__hold_serial"
}

# The keys of all functions would be too many at each prompt: those of functions that run something.
__hold_write_bindings() {
    local __hold_name
    builtin bind -X
    builtin bind -s
    for __hold_name in accept-line operate-and-get-next edit-and-execute-command shell-expand-line \
        call-last-kbd-macro complete insert-comment; do
        builtin bind -q "$__hold_name"
    done
    builtin complete -p
}

# Variables that shape what runs without being exported; without what is ours in them.
__hold_write_variables() {
    local __hold_name __hold_value
    for __hold_name in IFS CDPATH ENV BASH_ENV GLOBIGNORE EXECIGNORE PS2 PS4; do
        [[ -z ${!__hold_name+set} ]] ||
            builtin printf 'variable 2\0%s\0%s\0' "$__hold_name" "${!__hold_name}"
    done
    # Open now, when nothing of bash's own is: where they lead the host sees.
    __hold_value=
    for __hold_name in 3 4 5 6 7 8 9; do
        [[ ! -e /proc/self/fd/$__hold_name ]] || __hold_value+=" $__hold_name"
    done
    builtin printf 'descriptors 1\0%s\0' "$__hold_value"
    __hold_value=
    builtin printf 'variable 2\0PS0\0%s\0' "${PS0%"$__hold_ps0"}"
    builtin printf 'variable 2\0PS1\0%s\0' "${PS1%"$__hold_ps1"}"
    for __hold_name in "${PROMPT_COMMAND[@]}"; do
        [[ $__hold_name != "$__hold_first" && $__hold_name != "$__hold_show" ]] || continue
        __hold_name=${__hold_name#"$__hold_string_first"$'\n'}
        __hold_name=${__hold_name%$'\n'"$__hold_string_last"}
        __hold_value+=${__hold_value:+$'\n'}$__hold_name
    done
    builtin printf 'variable 2\0PROMPT_COMMAND\0%s\0' "${__hold_value-}"
}

# The bodies of many functions take bash longer than a prompt may: then their names alone are
# written, until the whole state is asked for.
__hold_write_functions() {
    if [[ $1 != whole ]] && (( __hold_big )); then
        builtin printf 'names 1\0'
        builtin compgen -A function
    else
        local __hold_from=0 __hold_to=0 # bytes into the file
        builtin printf 'functions 1\0'
        builtin read -r _ __hold_from </proc/self/fdinfo/1
        builtin declare -f
        builtin read -r _ __hold_to </proc/self/fdinfo/1
        (( __hold_big = __hold_to - __hold_from > 40960 ))
    fi
    builtin printf '\0'
}

# On the private key: the whole state, then the line as it stands in the editor. The traps are
# those of the prompt: this function does not see them all.
__hold_probed() {
    local __hold_flags=$-
    local -
    builtin set +aefuvx
    local __hold_traps=
    {
        IFS= builtin read -r -d '' __hold_traps
        builtin printf '%s' "$__hold_traps"
        __hold_write_state "$__hold_flags" whole
    } 0<"$__hold_state" 1<>/proc/self/fd/0
    __hold_line
}

# On the other private key, in front of a command line that is to run as it is. Without histchars
# bash expands none; `set +H` would be seen by the command, which may set it too.
__hold_exact() {
    (( ! __hold_exactly )) || builtin return 0
    __hold_exactly=1 __hold_histchars=(${histchars+"$histchars"})
    histchars=
}

__hold_expand_again() {
    (( __hold_exactly )) || builtin return 0
    __hold_exactly=0
    [[ ${histchars-unset} == '' ]] || builtin return 0 # the command has set it
    builtin unset histchars
    (( ! ${#__hold_histchars[@]} )) || histchars=${__hold_histchars[0]}
}

# On the gate's private keys. Before an Enter, the line alone; before a paste also whether this key
# map takes it as text; and to empty the line, without a signal that a trap would see.
__hold_gated() {
    local -
    builtin set +aefuvx
    __hold_line
}

__hold_gated_paste() {
    local -
    builtin set +aefuvx
    local __hold_paste=
    [[ $(builtin bind -q bracketed-paste-begin) != *'"\e[200~"'* ]] || __hold_paste=,paste
    __hold_line
}

__hold_emptied() {
    READLINE_LINE= READLINE_POINT=0
}

__hold_line() {
    local __hold_encoded __hold_flag=whole __hold_pieces=0 __hold_text=${READLINE_LINE-}
    local __hold_point=${READLINE_POINT-0} __hold_now=${__hold_history@P} __hold_before
    local HISTTIMEFORMAT=
    __hold_before=$(builtin history 1)
    # At a PS2 the lines before this one are in the history already, as one entry.
    if (( __hold_now > __hold_hist )) && [[ $__hold_before =~ ^\ *[0-9]+[*\ ]\  ]]; then
        __hold_before=${__hold_before#"${BASH_REMATCH[0]}"}
        __hold_text=$__hold_before$'\n'$__hold_text
        (( __hold_point += ${#__hold_before} + 1 ))
    fi
    if (( ${#__hold_text} > 16384 )); then
        __hold_text=${__hold_text:0:16384} __hold_flag=cut
    fi
    __hold_encode "$__hold_text"
    builtin set --
    # Characters may have four bytes, so 200 of them are sure to fit a record.
    while [[ -n $__hold_encoded ]]; do
        builtin set -- "$@" "T $__hold_seq $__hold_pieces ${__hold_encoded:0:200}"
        __hold_encoded=${__hold_encoded:200}
        (( __hold_pieces += 1 ))
    done
    __hold_send "$@" \
        "L $__hold_seq $__hold_pieces $__hold_flag${__hold_paste-} $__hold_point"
}

# __hold_nested PROGRAM [ARGUMENT...]: as typed, but if it starts an interactive shell, that reports
# too (nested.sh): with the same secret, on from the same numbers. Afterwards this shell goes on from
# where that one was, as the state file says.
__hold_nested() {
    local __hold_last_word=${!#} __hold_code __hold_traps __hold_secret
    local -a __hold_head=()
    # A command that names something to run cannot be one; the rest nested.sh looks at.
    if (( BASH_SUBSHELL )) || [[ ! -t 0 || ! -t 1 || ! -r $__hold_start_nested ]] ||
        ! builtin type -P "$1" >/dev/null ||
        [[ $1 != su && $__hold_last_word != @(-[!c]*|?(*/)@(bash|zsh|fish)) ]]; then
        builtin command "$@"
        builtin return
    fi
    if (( __hold_arrays )); then
        exec {__hold_secret}<<<"$__hold_nonce"
    else # an older bash writes a file for that
        exec {__hold_secret}< <(builtin printf '%s\n' "$__hold_nonce")
    fi
    HOLD_SHELL_FIFO=$__hold_fifo HOLD_SHELL_STATE=$__hold_state HOLD_SHELL_NONCE_FD=9 \
        HOLD_SHELL_BELOW=$__hold_seq HOLD_SHELL_SERIAL=$__hold_serial \
        HOLD_SHELL_NUMBER=$(( __hold_next > __hold_seq ? __hold_next : __hold_seq + 1 )) \
        builtin command /bin/sh "$__hold_start_nested" "$@" 9<&"$__hold_secret" {__hold_secret}<&-
    __hold_code=$?
    exec {__hold_secret}<&-
    {
        IFS= builtin read -r -d '' __hold_traps
        IFS=' ' builtin read -r -d '' -a __hold_head
    } 2>/dev/null <"$__hold_state"
    if [[ ${__hold_head[*]:0:2} == "HOLDSTATE1 $__hold_nonce" ]] &&
        (( __hold_head[2] > __hold_serial )); then
        # That number may have been used by what ended it.
        __hold_serial=${__hold_head[2]} __hold_next=$(( __hold_head[3] + 1 ))
    fi
    builtin return "$__hold_code"
}

builtin readonly -f __hold_nested __hold_send __hold_encode __hold_where __hold_begin __hold_close \
    __hold_is_comment __hold_tty __hold_end __hold_prompt __hold_shown __hold_ring __hold_line \
    __hold_write_state __hold_write_variables __hold_write_functions __hold_probed \
    __hold_exact __hold_expand_again __hold_gated __hold_gated_paste __hold_emptied

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
        PROMPT_COMMAND=("$__hold_first" ${PROMPT_COMMAND[@]+"${PROMPT_COMMAND[@]}"} "$__hold_show")
    else
        builtin declare -r __hold_arrays=0
        PROMPT_COMMAND=$__hold_string_first$'\n'${PROMPT_COMMAND-}$'\n'$__hold_string_last
    fi
    builtin declare +x __hold_arrays
    for __hold_files in emacs-standard vi-insert vi-command; do
        # By way of a macro: bash 5.2 cannot find what is bound to the very key that ends a search.
        # The newline: at a PS2 bash would take the brace for a word.
        {
            builtin bind -m "$__hold_files" '"\e[5099~": "\C-x\e[5098~"'
            builtin bind -m "$__hold_files" -x '"\C-x\e[5098~": '$'\n''{ __hold_probed; } >/dev/null 2>&1'
            builtin bind -m "$__hold_files" '"\e[5097~": "\C-x\e[5096~"'
            builtin bind -m "$__hold_files" -x '"\C-x\e[5096~": '$'\n''{ __hold_exact; } >/dev/null 2>&1'
            builtin bind -m "$__hold_files" '"\e[5095~": "\C-x\e[5094~"'
            builtin bind -m "$__hold_files" -x '"\C-x\e[5094~": '$'\n''{ __hold_gated; } >/dev/null 2>&1'
            builtin bind -m "$__hold_files" '"\e[5093~": "\C-x\e[5092~"'
            builtin bind -m "$__hold_files" -x '"\C-x\e[5092~": '$'\n''{ __hold_gated_paste; } >/dev/null 2>&1'
            builtin bind -m "$__hold_files" '"\e[5091~": "\C-x\e[5090~"'
            builtin bind -m "$__hold_files" -x '"\C-x\e[5090~": '$'\n''{ __hold_emptied; } >/dev/null 2>&1'
        } 2>/dev/null || builtin :
    done
    # By name, as they are typed. `set -x` shows the call, and no more of it. What the user's files
    # made of such a name stays, and so does what is not there.
    builtin declare -r __hold_start_nested=${BASH_SOURCE[0]%/*}/nested.sh
    builtin declare +x __hold_start_nested
    for __hold_files in bash zsh fish su env; do
        if builtin type -P "$__hold_files" >/dev/null && ! builtin declare -F "$__hold_files" >/dev/null; then
            builtin eval "function $__hold_files {
                { local -; builtin set +aefuvx; } 2>/dev/null
                __hold_nested $__hold_files \"\$@\"
            }"
            builtin export -nf "$__hold_files" # which it would be under `set -a`
        fi
    done
    __hold_send "R $__hold_below $$ bash $BASH_VERSION"
fi
builtin unset __hold_files __hold_encoded
