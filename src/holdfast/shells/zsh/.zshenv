# holdfast's side of an interactive zsh: says over a private FIFO when a command line begins and
# ends, with what status, where, and when the prompt is back. Before each prompt it writes its own
# state (environment, aliases, functions, ...) to a private file, and on a private key it says what
# stands unsubmitted in the line editor. holdfast.adapters.shell.state_file says how.
#
# zsh finds this file because holdfast.adapters.shell.integration.integrate() set ZDOTDIR. It is the only file
# here on purpose: it gives the user's ZDOTDIR back before anything else, so that zsh itself reads
# the user's .zprofile, .zshrc and .zlogin, in its own order. They are never edited.
#
# What it deliberately does not do: keep a descriptor open between reports (a checkpoint would
# meet it), export anything, make a file (the state file is there or it is not), load functions, or
# wait for anybody. A trap on EXIT is not in the state: zsh hides it from every function.
#
# Names start with __hold_ because this file shares its name space with the user.

if [[ -n ${HOLD_SHELL_ZDOTDIR+set} ]]; then
    builtin export ZDOTDIR=$HOLD_SHELL_ZDOTDIR
else
    builtin unset ZDOTDIR
fi

() {
    builtin emulate -L zsh
    builtin typeset -g __hold_fifo=${HOLD_SHELL_FIFO-} __hold_nonce=
    builtin typeset -g __hold_state=${HOLD_SHELL_STATE-}
    local __hold_fd=${HOLD_SHELL_NONCE_FD-}
    if [[ $__hold_fd == <-> ]]; then
        # Before the user's files, so that nothing started by them finds the secret in the pipe.
        IFS= builtin read -r __hold_nonce <&$__hold_fd
        builtin exec {__hold_fd}<&-
    fi
    builtin typeset -gr __hold_fifo __hold_state __hold_nonce
}
[[ ${HOLD_SHELL_FILES-} != none ]] || builtin setopt no_rcs # it was started with -f
# Started in a shell that reports, by this command line of it, this one goes on with its numbers.
builtin typeset -gir __hold_below=${${(M)HOLD_SHELL_BELOW:#<->}:-0}
builtin typeset -gi __hold_seq=${${(M)HOLD_SHELL_NUMBER:#<->}:-1} # of the next command line
builtin typeset -gi __hold_serial=${${(M)HOLD_SHELL_SERIAL:#<->}:-0} # of the last written state
builtin unset HOLD_SHELL_FIFO HOLD_SHELL_STATE HOLD_SHELL_NONCE_FD HOLD_SHELL_ZDOTDIR HOLD_SHELL_FILES \
    HOLD_SHELL_BELOW HOLD_SHELL_NUMBER HOLD_SHELL_SERIAL

# zsh/system is what writes without blocking; a zsh built without it is left alone.
if [[ -o interactive && -n $__hold_nonce ]] && builtin zmodload zsh/system 2>/dev/null; then
    builtin typeset -gi __hold_next=0 # the number to go on with, after a shell started in this one
    builtin typeset -gr __hold_start_nested=${${(%):-%x}:h:h}/nested.sh
    builtin typeset -gi __hold_ran=0 # whether it has begun
    builtin typeset -g __hold_line=  # as typed, also when it does not parse
    builtin typeset -g __hold_expanded= # the line that runs, with what its aliases stand for
    builtin typeset -gi __hold_big=0 # whether the functions are too many to write their bodies
    builtin typeset -gi __hold_exactly=0 # whether history expansion is off for this line
    builtin typeset -g __hold_histchars= # the user's own setting of it meanwhile
    builtin typeset -g __hold_tail=  # what was added to PS1 last
    builtin typeset -g __hold_eol_had=0 __hold_eol_was= __hold_eol_set= # of PROMPT_EOL_MARK

    # At the head of each hook, as "${...[@]}" because the user may have set KSH_ARRAYS: none of the
    # user's options from there on, and bytes instead of characters. What comes before it is in
    # braces whose errors go nowhere: `set -x` would show it.
    __hold_options=(-o no_multibyte -o no_aliases -o no_xtrace -o unset
        -o no_err_exit -o no_err_return -o no_all_export)
    builtin typeset -gr __hold_options

    # __hold_send BODY...: each body becomes one record in one write. A FIFO that is full or has
    # no reader loses the report rather than the prompt.
    __hold_send() {
        [[ -p $__hold_fifo ]] || return 0
        local __hold_body __hold_out
        builtin sysopen -w -o nonblock,cloexec -u __hold_out -- $__hold_fifo || return 0
        for __hold_body; do
            builtin syswrite -o $__hold_out -- $'\0HOLD1 '"$__hold_nonce $__hold_body"$'\0'
        done
        builtin exec {__hold_out}>&-
    }

    __hold_tty() {
        builtin print -rn -- $1 >/dev/tty
    }

    # __hold_encode TEXT: the text without newlines, in REPLY.
    __hold_encode() {
        REPLY=${1//[%]/%25}
        REPLY=${REPLY//$'\n'/%0A}
    }

    # The working directory, encoded; empty when it does not fit a record (the kernel is asked).
    __hold_where() {
        __hold_encode "$PWD"
        (( $#REPLY <= 800 )) || REPLY=
    }

    # __hold_report FLAG TEXT [BODY]: the beginning of a command line, and what follows on it.
    __hold_report() {
        local flag=$1 text=$2 cwd REPLY
        local -i pieces=0
        local -a bodies
        __hold_where
        cwd=$REPLY
        if (( $#text > 16384 )); then
            text=${text[1,16384]}
            [[ $flag != whole ]] || flag=cut
        fi
        __hold_encode "$text"
        while [[ -n $REPLY ]]; do
            bodies+=("T $__hold_seq $pieces ${REPLY[1,800]}")
            REPLY=${REPLY[801,-1]}
            (( pieces += 1 ))
        done
        __hold_send "${bodies[@]}" "B $__hold_seq $pieces $flag $cwd" "${@:3}"
    }

    # Every line that was entered, also one that does not parse (there is no preexec for that).
    __hold_typed() {
        { builtin emulate -L zsh "${__hold_options[@]}"; } 2>/dev/null
        __hold_line=${1%$'\n'}
        return 0
    }

    # The end mark. zsh prints its mark for an unfinished line (PROMPT_SP), and calls the user's
    # own precmd, before any hook of ours; so ours is printed in front of that mark, by zsh, which
    # writes the status for %?.
    __hold_eol() {
        __hold_eol_had=${+PROMPT_EOL_MARK}
        __hold_eol_was=${PROMPT_EOL_MARK-'%B%S%#%s%b'}
        __hold_eol_set=$'%{\e]133;D;%?;hold='$__hold_seq$'\a%}'$__hold_eol_was
        PROMPT_EOL_MARK=$__hold_eol_set
    }

    # Gives PROMPT_EOL_MARK back; true if zsh has printed ours. The user may have set another.
    __hold_eol_done() {
        local -i shown=$(( $1 && __hold_ran ))
        if (( __hold_ran )) && [[ ${PROMPT_EOL_MARK-} == "$__hold_eol_set" ]]; then
            if (( __hold_eol_had )); then
                PROMPT_EOL_MARK=$__hold_eol_was
            else
                builtin unset PROMPT_EOL_MARK
            fi
        else
            shown=0
        fi
        (( shown ))
    }

    __hold_begin() {
        { builtin emulate -L zsh "${__hold_options[@]}"; } 2>/dev/null
        local text=${1:-$3}
        __hold_ran=1 __hold_expanded=$3
        __hold_expand_again
        __hold_eol
        {
            __hold_report ${${text:+whole}:-unknown} "$text"
            __hold_tty $'\e]133;C;hold='$__hold_seq$'\a'
        } 2>/dev/null
        return 0
    }

    __hold_end() {
        { local __hold_status=$?; local -i __hold_sp=0; } 2>/dev/null
        { [[ -o promptsp && -o promptcr ]] && __hold_sp=1; } 2>/dev/null
        { builtin emulate -L zsh "${__hold_options[@]}"; } 2>/dev/null
        local line=$__hold_line REPLY
        __hold_line=
        # Nothing ran: an empty line, a comment, ^C; or a line that does not parse.
        (( __hold_ran )) ||
            [[ ${line//[[:space:]]/} == [^\#]* && $__hold_status != 0 ]] ||
            return 0
        {
            # The mark is on its way before the report: who has the report can wait for the mark.
            __hold_eol_done $__hold_sp ||
                __hold_tty $'\e]133;D;'$__hold_status';hold='$__hold_seq$'\a'
            __hold_where
            if (( __hold_ran )); then
                __hold_send "E $__hold_seq $__hold_status $REPLY"
            else
                __hold_report unparsed "$line" "E $__hold_seq $__hold_status $REPLY"
            fi
        } 2>/dev/null
        __hold_ran=0
        (( __hold_seq += 1, __hold_seq = __hold_next > __hold_seq ? __hold_next : __hold_seq ))
        return 0
    }

    # What `emulate` would hide from the state: the user's options, those that are on. To be run in
    # a hook itself, under these very options.
    builtin typeset -gr __hold_note_options='local __hold_on=
        builtin zmodload zsh/parameter && __hold_on="${(j: :kv)options[@]}"'

    __hold_prompt() {
        { local __hold_status=$?; builtin eval "$__hold_note_options"; } 2>/dev/null
        { builtin emulate -L zsh "${__hold_options[@]}"; } 2>/dev/null
        local REPLY
        __hold_expand_again
        # Literal, because PS1 is not expanded for variables unless the user asked for it.
        PS1=${PS1%$__hold_tail}
        __hold_tail=$'%{\e]133;B;hold='$__hold_seq$'\a%}'
        PS1+=$__hold_tail
        {
            __hold_tty $'\e]133;A;hold='$__hold_seq$'\a'
            __hold_write_state "$__hold_on"
            __hold_where
            __hold_send "P $__hold_seq $__hold_status $REPLY"
        } 2>/dev/null
        return 0
    }

    # __hold_write_state OPTIONS [whole]: the state, by builtins only, over what the file held. What
    # the old state leaves behind the END of the new one is nobody's.
    __hold_write_state() {
        local -i __hold_out=-1
        builtin sysopen -w -o cloexec -u __hold_out -- $__hold_state || return 0
        (( __hold_serial += 1 ))
        {
            builtin trap
            builtin print -rN -- '' "HOLDSTATE1 $__hold_nonce $__hold_serial $__hold_seq zsh" \
                'cwd 1' $PWD 'options 1' "$1" 'umask 1'
            builtin umask
            builtin print -rN -- '' 'hash 1'
            builtin hash
            builtin print -rN -- ''
            __hold_write_tables "${2-}"
            builtin print -rN -- "END $__hold_nonce $__hold_serial"
        } >&$__hold_out
        builtin exec {__hold_out}>&-
    }

    __hold_write_tables() {
        local __hold_name __hold_text
        local -a __hold_pairs
        for __hold_name in ${(k)parameters[(R)*export*]}; do
            __hold_pairs+=($__hold_name "${(P)__hold_name}")
        done
        builtin print -rN -- "exported $#__hold_pairs" "${__hold_pairs[@]}"
        # The user's own, which no program inherits: not zsh's, of which some would load a module
        # ("undefined"), nor those of the functions that run.
        __hold_pairs=()
        for __hold_name __hold_text in "${(@kv)parameters}"; do
            [[ $__hold_text == *(special|local|export|hide|undefined)* || $__hold_name == __hold_* ]] && continue
            if [[ $__hold_text == association* ]]; then
                __hold_pairs+=($__hold_name "${(kvP)__hold_name}")
            else
                __hold_pairs+=($__hold_name "${(P)__hold_name}")
            fi
        done
        builtin print -rN -- "private $#__hold_pairs" "${__hold_pairs[@]}"
        for __hold_name in aliases galiases saliases jobstates jobtexts nameddirs; do
            __hold_pairs=("${(@kvP)__hold_name}")
            builtin print -rN -- "$__hold_name $#__hold_pairs" "${__hold_pairs[@]}"
        done
        # Variables that shape what runs without being exported; without what is ours in them.
        for __hold_name in IFS CDPATH FPATH NULLCMD READNULLCMD PS2 PS4; do
            [[ ! -v $__hold_name ]] ||
                builtin print -rN -- 'variable 2' $__hold_name "${(P)__hold_name}"
        done
        # Open now, when nothing of zsh's own is: where they lead the host sees.
        __hold_pairs=()
        for __hold_name in {3..9}; do
            [[ ! -e /proc/self/fd/$__hold_name ]] || __hold_pairs+=($__hold_name)
        done
        builtin print -rN -- 'descriptors 1' "$__hold_pairs"
        builtin print -rN -- 'variable 2' PS1 "${PS1%$__hold_tail}"
        builtin print -rN -- 'bindings 1' "$(builtin zle -lL; builtin bindkey -L)"
        for __hold_name in {precmd,preexec,chpwd,periodic,zshexit,zshaddhistory}_functions; do
            __hold_pairs=(${${(P)__hold_name}:#__hold_*})
            builtin print -rN -- 'variable 2' $__hold_name "${(j: :)__hold_pairs}"
        done
        # The bodies of many functions take longer than a prompt may: then their names alone are
        # written, until the whole state is asked for.
        if [[ $1 != whole ]] && (( __hold_big )); then
            builtin print -rN -- 'names 1' "${(F)${(k)functions}}"
        else
            __hold_text="${(pj:\0:kv)functions}"
            builtin print -rN -- "bodies $(( 2 * $#functions ))" "$__hold_text"
            (( __hold_big = $#__hold_text > 40960 ))
        fi
    }

    # On the other private key, in front of a command line that is to run as it is. Not by the
    # option: zsh looks at that before it reads the line. The third character begins comments.
    __hold_exact() {
        { builtin emulate -L zsh "${__hold_options[@]}"; } 2>/dev/null
        (( ! __hold_exactly )) || return 0
        __hold_exactly=1 __hold_histchars=$histchars
        histchars=$'\0\0'${histchars[3]}
        # Plugins put a widget in its place that quotes what looks like an address.
        { builtin zle -A bracketed-paste __hold_users_paste &&
            builtin zle -A .bracketed-paste bracketed-paste; } 2>/dev/null
    }

    # When the line is read: the command may set them.
    __hold_expand_again() {
        (( __hold_exactly )) || return 0
        __hold_exactly=0 histchars=$__hold_histchars
        { builtin zle -A __hold_users_paste bracketed-paste &&
            builtin zle -D __hold_users_paste; } 2>/dev/null
        return 0
    }

    # On the private key: the whole state, then the line as it stands in the editor.
    __hold_probed() {
        { builtin eval "$__hold_note_options"; builtin emulate -L zsh; } 2>/dev/null
        { __hold_write_state "$__hold_on" whole; } 2>/dev/null
        __hold_edited whole
    }

    # On the gate's private keys. Before an Enter, the line alone; before a paste also whether this
    # key map takes it as text; and to empty the line, without a signal that a trap would see.
    __hold_gated() {
        { builtin emulate -L zsh; } 2>/dev/null
        __hold_edited whole
    }

    __hold_gated_paste() {
        { builtin emulate -L zsh; } 2>/dev/null
        local bound=
        { bound=$(builtin bindkey -M $KEYMAP '^[[200~'); } 2>/dev/null
        if [[ $bound == *' bracketed-paste' ]]; then
            __hold_edited whole,paste
        else
            __hold_edited whole
        fi
    }

    __hold_emptied() {
        BUFFER= CURSOR=0
        return 0
    }

    # __hold_edited FLAG: the line as it stands in the editor, in zsh's own options.
    __hold_edited() {
        local -i point=$(( $#PREBUFFER + CURSOR ))
        local text=$PREBUFFER$BUFFER flag=$1 REPLY
        { builtin emulate -L zsh "${__hold_options[@]}"; } 2>/dev/null
        local -i pieces=0
        local -a bodies
        if (( $#text > 16384 )); then
            text=${text[1,16384]} flag=cut
        fi
        __hold_encode "$text"
        while [[ -n $REPLY ]]; do
            bodies+=("T $__hold_seq $pieces ${REPLY[1,800]}")
            REPLY=${REPLY[801,-1]}
            (( pieces += 1 ))
        done
        {
            __hold_send "${bodies[@]}" "L $__hold_seq $pieces $flag $point"
        } 2>/dev/null
        return 0
    }

    # At the first prompt, when the user's files have added their hooks: ours go around them, so
    # that what theirs print is not taken for output of a command.
    __hold_install() {
        { __hold_hook_up; __hold_prompt; } 2>/dev/null # with the user's options, of which it tells
    }

    __hold_hook_up() {
        { builtin emulate -L zsh "${__hold_options[@]}"; } 2>/dev/null
        precmd_functions=(__hold_end ${precmd_functions:#__hold_install} __hold_prompt)
        preexec_functions+=(__hold_begin)
        zshaddhistory_functions=(__hold_typed $zshaddhistory_functions)
        __hold_line=
        local keymap
        {
            builtin zle -N __hold_probed
            builtin zle -N __hold_exact
            builtin zle -N __hold_gated
            builtin zle -N __hold_gated_paste
            builtin zle -N __hold_emptied
            for keymap in emacs viins vicmd; do
                builtin bindkey -M $keymap '\e[5099~' __hold_probed
                builtin bindkey -M $keymap '\e[5097~' __hold_exact
                builtin bindkey -M $keymap '\e[5095~' __hold_gated
                builtin bindkey -M $keymap '\e[5093~' __hold_gated_paste
                builtin bindkey -M $keymap '\e[5091~' __hold_emptied
            done
        } 2>/dev/null
        # By name, as they are typed. `set -x` shows the call, and no more of it. What the user's
        # files made of such a name stays, and so does what is not there.
        local name
        for name in bash zsh fish su env; do
            (( $+functions[$name] || ! $+commands[$name] )) || builtin eval "function $name {
                { builtin emulate -L zsh \"\${__hold_options[@]}\" } 2>/dev/null
                __hold_nested $name \"\$@\"
            }"
        done
        { __hold_send "R $__hold_below $$ zsh $ZSH_VERSION"; } 2>/dev/null
        return 0
    }
    # Whether the command line puts this program in the place of the shell.
    __hold_is_replaced_by() {
        local word
        local -i after=0
        for word in ${(z)__hold_expanded}; do
            if [[ $word == exec ]]; then
                after=1
            elif (( after )) && [[ $word != (-*|*=*) ]]; then
                [[ $word != $1 ]] || return 0
                after=0
            fi
        done
        return 1
    }

    # __hold_nested PROGRAM [ARGUMENT...]: as typed, but if it starts an interactive shell, that
    # reports too (nested.sh): with the same secret, on from the same numbers. Afterwards this shell
    # goes on from where that one was, as the state file says.
    __hold_nested() {
        # `exec` of zsh runs functions, too.
        if (( ZSH_SUBSHELL == 0 && $#funcstack == 2 )) && __hold_is_replaced_by $1; then
            exec command "$@"
        fi
        # A command that names something to run cannot be one; the rest nested.sh looks at.
        if (( ZSH_SUBSHELL || $#funcstack > 2 )) || [[ ! -t 0 || ! -t 1 || ! -r $__hold_start_nested ]] ||
            (( ! $+commands[$1] )) ||
            [[ $1 != su && $@[-1] != (-[^c]*|(|*/)(bash|zsh|fish)) ]]; then
            builtin command "$@"
            return
        fi
        local REPLY
        local -i code
        local -a head
        HOLD_SHELL_FIFO=$__hold_fifo HOLD_SHELL_STATE=$__hold_state HOLD_SHELL_NONCE_FD=9 \
            HOLD_SHELL_BELOW=$__hold_seq HOLD_SHELL_SERIAL=$__hold_serial \
            HOLD_SHELL_NUMBER=$(( __hold_next > __hold_seq ? __hold_next : __hold_seq + 1 )) \
            command /bin/sh $__hold_start_nested "$@" 9< <(builtin print -r -- $__hold_nonce)
        code=$?
        {
            {
                builtin read -r -d $'\0' REPLY
                builtin read -r -d $'\0' REPLY
            } <$__hold_state
            head=(${=REPLY})
            # That number may have been used by what ended it.
            [[ $head[1] == HOLDSTATE1 && $head[2] == $__hold_nonce && $head[3] -gt $__hold_serial ]] &&
                __hold_serial=$head[3] __hold_next=$(( head[4] + 1 ))
        } 2>/dev/null
        return code
    }

    builtin typeset -ga precmd_functions preexec_functions zshaddhistory_functions
    precmd_functions+=(__hold_install)
fi

[[ ! -o rcs || ! -r ${ZDOTDIR-$HOME}/.zshenv ]] || builtin source ${ZDOTDIR-$HOME}/.zshenv
