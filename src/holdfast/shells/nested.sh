# Starts a shell that reports below one that does. An integrated bash, zsh or fish calls this in the
# place of a command that starts another shell (or `su`, or `env` with one behind it):
#
#   HOLD_SHELL_...= /bin/sh THIS PROGRAM [ARGUMENT...] 9<NONCE
#
# The nested shell is told what holdfast.adapters.shell.integration tells the first one: our file
# beside the user's own, the secret through a pipe, and with which number its commands begin. What is
# no bare interactive shell is started as it was typed, and is told nothing.
#
# In sh because it serves three shells. Nothing of it stays: every way out is an exec. Names start
# with __hold_ because a variable of the user's environment may have any other name.

__hold_here=${0%/*}
# fish can give a command no descriptor but the first: there the secret comes by that one.
[ "${HOLD_SHELL_NONCE_FD-}" != 0 ] || exec 9<&0 0<&1
export HOLD_SHELL_NONCE_FD=9

as_typed() {
    exec 9<&-
    unset HOLD_SHELL_FIFO HOLD_SHELL_STATE HOLD_SHELL_NONCE_FD HOLD_SHELL_BELOW HOLD_SHELL_NUMBER \
        HOLD_SHELL_SERIAL
    exec "$@"
}

# integrated KIND WORD...: the words start a shell of this kind, and more options may follow.
integrated() {
    __hold_kind=$1
    shift
    export HOLD_SHELL_FILES="$__hold_files"
    case $__hold_kind in
        bash)
            if [ -z "$__hold_login" ] && [ -z "$__hold_files" ]; then
                HOLD_SHELL_FILES=rc
                set -- "$@" --init-file "$__hold_here/bash.sh"
            else
                # As bash has it: a login shell reads no rc file.
                [ -z "$__hold_login" ] || HOLD_SHELL_FILES=${__hold_profile:-login}
                [ -z "${ENV+set}" ] || export HOLD_SHELL_ENV="$ENV"
                export ENV="$__hold_here/bash.sh"
                set -- "$@" --posix ${__hold_login:+-l}
            fi
            ;;
        zsh)
            [ -z "${ZDOTDIR+set}" ] || export HOLD_SHELL_ZDOTDIR="$ZDOTDIR"
            export ZDOTDIR="$__hold_here/zsh"
            set -- "$@" ${__hold_login:+-l}
            ;;
        fish)
            set -- "$@" ${__hold_login:+-l} ${__hold_files:+-N} \
                --init-command "source '$__hold_here/fish.fish'"
            ;;
    esac
    exec "$@"
}

__hold_login='' __hold_files='' __hold_profile=''
case $1 in
    env | */env)
        # Only what `export` does, too: `env -i` would take away what the shell is to be told.
        __hold_env=$1
        shift
        while :; do
            case ${1-} in
                [0-9]*=* | =*) break ;;
                *=*) ;;
                *) break ;;
            esac
            case ${1%%=*} in
                *[!A-Za-z0-9_]*) break ;;
            esac
            export "$1"
            shift
        done
        case ${1-} in
            bash | */bash | zsh | */zsh | fish | */fish) ;;
            *) as_typed "$__hold_env" "$@" ;;
        esac
        ;;
    su | */su)
        # Only root, and who runs this session, can write to its FIFO and read these files.
        __hold_user=${2-root}
        case $__hold_user in
            -*) as_typed "$@" ;;
        esac
        [ "$#" -le 2 ] || as_typed "$@"
        case $(id -u -- "$__hold_user" 2>/dev/null) in
            0 | "$(id -u)") ;;
            *) as_typed "$@" ;;
        esac
        __hold_kind=$(getent passwd "$__hold_user") || as_typed "$@"
        __hold_kind=${__hold_kind##*[:/]} # of the login shell, which su starts
        case $__hold_kind in
            bash | zsh | fish) integrated "$__hold_kind" "$1" -- "$__hold_user" ;;
            *) as_typed "$@" ;;
        esac
        ;;
esac

__hold_program=$1 __hold_kind=${1##*/}
case $__hold_kind in
    bash | zsh | fish) ;;
    *) as_typed "$@" ;;
esac
shift
for __hold_word; do
    case $__hold_kind:$__hold_word in
        *:-i | fish:--interactive) ;;
        *:-l | *:--login) __hold_login=yes ;;
        bash:--norc | zsh:-f | fish:-N | fish:--no-config) __hold_files=none ;;
        bash:--noprofile) __hold_profile=none ;;
        *) as_typed "$__hold_program" "$@" ;;
    esac
done
integrated "$__hold_kind" "$__hold_program"
