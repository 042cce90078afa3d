"""The state that a shell keeps between command lines, as it was at one prompt.

Deliberately without secrets: the value of an environment variable is here only if the variable
decides which code runs. All others have a digest, which shows that they changed but not their
value. So a state can be stored, compared and shown to every actor that may see the session.
"""

from __future__ import annotations

from enum import StrEnum

from holdfast.model.record import Record

# Variables that decide which code runs, or what a command line means. Their values are shown.
# Not a place for names that are used to carry credentials: no proxies (user and password in the
# URL), no GIT_CONFIG_* (authorization headers), no *_TOKEN.
SHAPING_NAMES = frozenset({
    "PATH", "FPATH", "CDPATH", "MANPATH", "HOME", "SHELL", "IFS", "ENV", "BASH_ENV", "ZDOTDIR",
    "PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS4", "SHELLOPTS", "BASHOPTS", "GLOBIGNORE",
    "EXECIGNORE", "NULLCMD", "READNULLCMD", "POSIXLY_CORRECT", "TMPDIR", "precmd_functions",
    "preexec_functions", "chpwd_functions", "periodic_functions", "zshexit_functions",
    "zshaddhistory_functions", "fish_function_path", "EDITOR", "VISUAL", "PAGER", "BROWSER",
    "LESSOPEN", "LESSCLOSE", "MANPAGER", "SUDO_ASKPASS", "SSH_ASKPASS", "GIT_DIR",
    "GIT_WORK_TREE", "GIT_EXEC_PATH", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR", "GIT_PAGER", "GIT_ASKPASS", "GIT_CONFIG", "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM", "GIT_TEMPLATE_DIR", "GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND",
    "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONWARNINGS",
    "PYTHONBREAKPOINT", "VIRTUAL_ENV", "NODE_OPTIONS", "NODE_PATH", "NPM_CONFIG_PREFIX",
    "PERL5LIB", "PERL5OPT", "PERL5DB", "RUBYLIB", "RUBYOPT", "GEM_PATH", "GEM_HOME",
    "BUNDLE_GEMFILE", "CLASSPATH", "JAVA_HOME", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS", "GOPATH", "GOROOT", "GOFLAGS", "GOBIN", "CARGO_HOME", "RUSTUP_HOME",
    "RUSTC", "RUSTC_WRAPPER", "RUSTFLAGS", "CC", "CXX", "LD", "MAKE", "MAKEFLAGS", "MAKEFILES",
    "CFLAGS", "LDFLAGS", "CPATH", "LIBRARY_PATH", "PKG_CONFIG_PATH", "KUBECONFIG",
    "DOCKER_HOST", "DOCKER_CONFIG", "GCONV_PATH", "LOCPATH", "NLSPATH", "TERMINFO",
    "TERMINFO_DIRS", "INPUTRC", "LUA_PATH", "LUA_CPATH", "PHPRC", "R_LIBS", "R_PROFILE",
})  # fmt: skip
SHAPING_PREFIXES = ("LD_", "DYLD_", "GLIBC_TUNABLES", "BASH_FUNC_")
SHAPING_SUFFIXES = ("_PRELOAD",)


def shapes_commands(name: str) -> bool:
    """Whether this variable decides what runs, so that its value is shown."""
    return (
        name in SHAPING_NAMES
        or name.startswith(SHAPING_PREFIXES)
        or name.endswith(SHAPING_SUFFIXES)
    )


class ShellState(Record):
    """The shell's state when it showed prompt `number`."""

    kind: str  # "bash", "zsh" or "fish"
    number: int  # of the next command line, as in the prompt's report
    serial: int  # counts the states this shell has written; rises also when `number` does not
    cwd: str
    umask: str
    exported: dict[str, str]  # name -> value if it shapes commands, else "#" and a digest
    variables: dict[str, str]  # not exported, but they decide which code runs
    aliases: dict[str, str]
    functions: dict[str, str]  # name -> digest of the body; "" when only the name is known
    options: tuple[str, ...]  # those that are on
    traps: dict[str, str]  # signal or event -> what runs on it
    jobs: dict[str, str]  # pid -> "running sleep 100"
    hashed: dict[str, str]  # command -> remembered path, if PATH would find another
    # Variables that no program inherits and that shape nothing by themselves: name -> "#" and a
    # digest. A command line may use them all the same.
    private: dict[str, str] = {}  # noqa: RUF012 - Records never mutate a default
    bindings: tuple[str, ...] = ()  # lines that say which keys run or type what
    # Its descriptors 3 to 9, and what they lead to: the latter the kernel says, not the shell.
    descriptors: dict[str, str] = {}  # noqa: RUF012
    references: dict[str, str] = {}  # noqa: RUF012 - variable -> the one that it stands for (bash)
    # Variables that change what is assigned to them (bash): name -> letters of their attributes.
    attributes: dict[str, str] = {}  # noqa: RUF012
    builtins: tuple[
        str, ...
    ] = ()  # commands of the shell itself that are on, loaded ones too (bash)
    directories: dict[str, str] = {}  # noqa: RUF012 - NAME -> directory of zsh's ~NAME
    remembered: dict[str, str] = {}  # noqa: RUF012 - command -> path, all that the shell remembers


class ChangeKind(StrEnum):
    """What changed."""

    ENV = "env"
    PATH = "path"
    ALIAS = "alias"
    FUNCTION = "function"
    OPTION = "option"
    TRAP = "trap"
    CWD = "cwd"
    UMASK = "umask"
    JOB = "job"
    HASH = "hash"  # a command whose remembered place is not where its PATH leads


class What(StrEnum):
    """How it changed."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


class Change(Record):
    """One difference between two states of a shell."""

    kind: ChangeKind  # what kind of state
    name: str  # of the variable, alias, ...; empty for `cwd` and `umask`
    what: What  # what happened to it
    # earlier value; both are empty where only the name is shown, as for variables that do not
    # decide what runs
    before: str = ""
    after: str = ""  # value now
