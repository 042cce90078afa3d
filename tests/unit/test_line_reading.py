"""What a command line may use of a shell's state: core.gate.line_reading."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.gate.line_reading import read_line, used_keys
from unit.test_originators import state

KNOWN = (
    "alias:df", "func:wc", "var:DIR", "var:PATH", "path:/evil", "hash:uname", "cwd", "trap:USR1",
    "var:LD_PRELOAD", "var:GIT_PAGER", "var:PROMPT_COMMAND", "option:noglob", "job:77",
    "var:@", "fd:9", "var:OLDPWD", "var:HOME", "umask", "key:bind \\r x",
)  # fmt: skip
AMBIENT = {"trap:USR1", "var:PROMPT_COMMAND", "option:noglob", "key:bind \\r x"}


def used(line: str, **shell: Any) -> set[str]:
    """What counts for this line and not for every one."""
    found = used_keys(line, state(**shell), KNOWN, lambda program: "/evil" * (program == "du"))
    assert set(found) >= AMBIENT
    return set(found) - AMBIENT


def test_what_is_given_to_a_number_is_an_expression() -> None:
    assert "var:DIR" not in used("count=DIR")
    assert "var:DIR" in used("count=DIR", attributes={"count": "i"})


def test_a_loaded_builtin_counts_where_it_is_called() -> None:
    known = ["builtin:wc"]
    assert used_keys("wc x", state(), known) == known
    assert used_keys("cat x", state(), known) == []


@pytest.mark.parametrize("name", ("MAILPATH", "MAILCHECK", "auto_resume"))
def test_what_bash_looks_at_before_each_prompt_counts_always(name: str) -> None:
    assert used_keys("true", state(), [f"var:{name}"]) == [f"var:{name}"]


def test_the_shells_own_name_may_be_another() -> None:
    assert used_keys("echo $0", state(), ["var:BASH_ARGV0"]) == ["var:BASH_ARGV0"]


def test_where_the_history_goes_counts_where_it_is_saved() -> None:
    assert used_keys("history -a", state(), ["var:HISTFILE"]) == ["var:HISTFILE"]
    assert used_keys("exit", state(), ["var:HISTFILE"]) == ["var:HISTFILE"]
    assert used_keys("true", state(), ["var:HISTFILE"]) == []


def test_functions_that_the_line_editor_of_zsh_calls_count_always() -> None:
    assert used_keys("true", state(), ["func:zle-line-finish"]) == ["func:zle-line-finish"]


@pytest.mark.parametrize(
    ("line", "key"),
    (
        ("df", "alias:df"),
        ("df /", "alias:df"),
        ("true && df", "alias:df"),
        ("echo $(df)", "alias:df"),
        ('echo "$(df /)"', "alias:df"),
        ("echo `df`", "alias:df"),
        ("X=1 df", "alias:df"),
        ("echo one\ndf", "alias:df"),
        ("(df)", "alias:df"),
        ("if true; then df; fi", "alias:df"),
        ("sudo df", "alias:df"),
        ("sh -c 'true; df'", "alias:df"),
        ("\\d\\f", "alias:df"),
        ('"d"f', "alias:df"),
        ("> out df", "alias:df"),
        ("echo x | wc", "func:wc"),
        ('x=wc; "$x" < /dev/null', "func:wc"),
        ('eval "$TODO"', "func:wc"),
        (". ./file", "var:DIR"),
        ("source file", "var:DIR"),
        ("rm -rf $DIR", "var:DIR"),
        ('rm -rf "${DIR}/x"', "var:DIR"),
        ("echo ${DIR[1]}", "var:DIR"),
        ("echo ${#DIR}", "var:DIR"),
        ("echo ${!WHICH}", "var:DIR"),
        ("echo $((DIR + 1))", "var:DIR"),
        ("[[ -v DIR ]]", "var:DIR"),
        ("echo ${x:DIR}", "var:DIR"),
        ("echo ${x:0:DIR}", "var:DIR"),
        ("declare -i n=DIR", "var:DIR"),
        ("echo ${(U)DIR}", "var:DIR"),
        ("echo ${(e)x}", "var:DIR"),
        ("echo x >&12", "fd:9"),
        ("compgen -F wc", "func:wc"),
        ("du -s /", "path:/evil"),
        ("uname", "hash:uname"),
        ("uname", "var:PATH"),
        ("uname", "var:LD_PRELOAD"),
        ("git log", "var:GIT_PAGER"),
        ("./run", "cwd"),
        ("make", "cwd"),
        ("rm file", "cwd"),
        ("echo x > file", "cwd"),
        ("cat < sub/file", "cwd"),
        ("cd sub", "cwd"),
        ("cd -", "var:OLDPWD"),
        ("cd", "var:HOME"),
        ("echo ~/x", "var:HOME"),
        ("fg", "job:77"),
        ("kill %1", "job:77"),
        ("kill 77", "job:77"),
        ('echo "$1"', "var:@"),
        ("for x; do echo $x; done", "var:@"),
        ("echo x >&9", "fd:9"),
        ("read -u 9 x", "fd:9"),
        ("echo x > /tmp/f", "umask"),
        ("{df,/}", "alias:df"),
    ),
)
def test_a_line_uses(line: str, key: str) -> None:
    assert key in used(line)


@pytest.mark.parametrize(
    ("line", "key"),
    (
        ("echo df", "alias:df"),
        ("unalias df", "alias:df"),
        ("unset -f wc", "func:wc"),
        ("unset DIR", "var:DIR"),
        ("DIR=/tmp", "var:DIR"),
        ("export PATH=/usr/bin:/bin", "var:PATH"),
        ("export PATH=/usr/bin:/bin", "cwd"),
        ("/usr/bin/uname", "hash:uname"),
        ("/usr/bin/uname", "var:PATH"),
        ("echo hi", "var:LD_PRELOAD"),
        ("unset LD_PRELOAD", "var:LD_PRELOAD"),
        ("ls /tmp", "cwd"),
        ("uname -a", "cwd"),
        ("cd /tmp", "cwd"),
        ("echo hi", "cwd"),
        ("echo hi", "job:77"),
        ("echo $((1+2))", "var:DIR"),
        ("ls /tmp", "path:/evil"),
        ("echo hi", "umask"),
    ),
)
def test_a_line_does_not_use(line: str, key: str) -> None:
    if "path:" in key:
        found = used_keys(line, state(), KNOWN, lambda program: "/usr/bin")
        assert key not in found
    else:
        assert key not in used(line)


def test_an_alias_leads_to_what_it_stands_for_and_a_function_to_anything() -> None:
    assert "alias:df" in used("free", aliases={"free": "df -h", "df": "x"})
    assert "var:DIR" in used("go", aliases={"go": "cd $DIR"})
    assert used("tidy", functions={"tidy": "#1"}) >= {"func:wc", "var:DIR", "alias:df", "cwd"}
    assert "func:wc" in used("echo hi", variables={"PROMPT_COMMAND": "wc"})


def test_global_and_suffix_aliases_of_zsh_stand_anywhere() -> None:
    known = ("alias:NOW -g", "alias:txt -s")
    shell = state(kind="zsh", aliases={"NOW -g": "; df", "txt -s": "cat"})
    assert used_keys("echo mine NOW", shell, known) == ["alias:NOW -g"]
    assert used_keys("./notes.txt", shell, known) == ["alias:txt -s"]
    assert "df" in read_line("; df").commands


def test_of_a_shell_that_is_not_known_everything_counts_and_an_empty_line_uses_nothing() -> None:
    assert used_keys("true", None, KNOWN) == list(KNOWN)
    assert used_keys("  ", state(), KNOWN) == []


def counts(line: str, key: str, found: tuple[str, ...] = ("mkdir",), **shell: Any) -> bool:
    return bool(used_keys(line, state(**shell), (key,), lambda each: "/bin" * (each in found)))


@pytest.mark.parametrize(
    ("line", "key", "harmless"),
    (
        ("cd sub", "var:CDPATH", "cd /tmp"),
        ("pushd sub", "var:CDPATH", "cd ../sub"),
        ("builtin cd sub", "var:CDPATH", "mkdir sub"),
        ("lss", "func:command_not_found_handle", "mkdir /a"),
        ("echo $(lss)", "func:command_not_found_handler", ":"),
        ('"$x"', "func:command_not_found_handle", 'echo "$x"'),
        ("lss", "trap:fish_command_not_found fish_command_not_found", ":"),
        ("cd /", "func:chpwd", ":"),
        ("popd", "var:chpwd_functions", "mkdir /a"),
        ('eval "$x"', "func:chpwd", "echo cd"),
        ("mkdir /a", "var:BASH_ENV", ":"),
        ("sh -c :", "var:BASH_ENV", "cd /"),
        ("set -g DEST x", "trap:variable DEST laid", ":"),
        ("cd /", "trap:variable PWD laid", "  "),
        (":", "key:bind \\r other", "  "),
        (":", 'key:"\\C-m": "x"', "  "),
        (":", 'key:bindkey "^M" other', "  "),
        (":", "key:zle -N accept-line other", "  "),
        (":", 'key:"x": "y"', "  "),
    ),
)
def test_what_runs_on_an_occasion_counts_where_a_line_gives_it(
    line: str, key: str, harmless: str
) -> None:
    assert counts(line, key)
    assert not counts(harmless, key)


@pytest.mark.parametrize(
    "key", ('"\\C-t": "date"', 'bindkey "^T" date', "bind \\ct date", "zle -N mine other")
)
def test_a_key_that_no_line_needs_does_not_count(key: str) -> None:
    assert not counts("mkdir /a", f"key:{key}")


def test_a_shell_that_goes_to_directories_by_their_names_moves_by_any_word() -> None:
    assert counts("sub", "func:chpwd", options=("autocd",), kind="zsh")
    assert not counts("mkdir", "func:chpwd", options=("autocd",), kind="zsh")
    assert counts("cd where", "var:where", options=("cdable_vars",))


def test_words_that_the_shell_resolves_lead_to_what_they_stand_for() -> None:
    assert counts("if true; then :; fi", "alias:if", aliases={"if": "df; if"})
    assert counts("while :; do :; done", "alias:do", aliases={"do": "do df;"})
    assert not counts("echo if", "alias:if", aliases={"if": "df; if"})
    assert counts("x df", "alias:df", aliases={"x": "x ", "df": "du"})
    assert counts("> $A", "var:C", references={"A": "B", "B": "C[0]", "C": "C"})
    assert not counts("> $C", "var:B", references={"A": "B"})
    assert counts("> ~out/x", "dir:out") and counts("> ~out/x", "var:out")
    assert not counts("> /home/out", "dir:out")
    assert counts("kill $!", "job:77") and not counts("echo ${!x}", "job:77")


@pytest.mark.parametrize(
    "line",
    (
        "[ $? -ne 0 ] && x", "echo ${?}; x", "if (( PIPESTATUS[0] )); then x; fi", "rm $_",
        "if test $status -ne 0; x; end", "for i in 1; do echo $?; done", "echo $(:; :) $?",
        "echo ';' $?", "x=$?; make",
    ),
)  # fmt: skip
def test_a_line_sees_the_status_of_the_one_before(line: str) -> None:
    assert read_line(line).status


@pytest.mark.parametrize("line", ("make; echo $?", "make && rm $_", "echo $_x", "make\necho $?"))
def test_a_line_sees_its_own_status(line: str) -> None:
    assert not read_line(line).status


@pytest.mark.parametrize("line", ("!!", "!ls", "echo !$", "^a^b", "fc -s", "true; fc"))
def test_a_line_that_recalls_others_says_so(line: str) -> None:
    assert read_line(line).history


@pytest.mark.parametrize("line", ("echo hi!", "! true", "[ a != b ]"))
def test_a_line_that_recalls_nothing_does_not(line: str) -> None:
    assert not read_line(line).history


@given(st.text(alphabet="ab $(){}`'\"\\;|&<>!~/\n=1", max_size=60))
def test_any_text_is_read(text: str) -> None:
    used_keys(text, state(aliases={"a": "b a"}), KNOWN)
