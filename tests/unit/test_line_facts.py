"""What a policy knows of a line: commands wherever they hide, what destroys, what is written where,
and what cannot be known."""

from __future__ import annotations

import pytest

from holdfast.core.gate.effect_facts import facts_of
from holdfast.core.gate.patterns import could_match
from holdfast.model.gate import EffectKind
from unit.gating import GRAMMAR, WORKSPACE, Links, effect, facts

# Each runs `rm`, and says so.
RUNS_RM = [
    "rm x", "'rm' x", 'r"m" x', r"\rm x", r"r\m x", "/bin/rm x", "$'\\x72m' x", "$'\\162\\155' x",
    "r{m,} x", "ls; rm x", "ls && rm x", "ls || rm x", "ls | rm x", "ls & rm x", "! rm x",
    "( rm x )", "{ rm x; }", "if rm x; then ls; fi", "if ls; then rm x; fi",
    "while ls; do rm x; done", "for i in 1; do rm x; done", "for i in $(rm x); do ls; done",
    "case $(rm x) in *) ls;; esac", "case a in a) rm x;; esac", "f() { rm x; }; f",
    "function f { rm x; }", "echo $(rm x)", "echo `rm x`", 'echo "$(rm x)"', 'echo "a `rm x` b"',
    "echo ${y:-$(rm x)}", "echo $(( $(rm x) ))", "cat <(rm x)", "cat > >(rm x)", "[[ -n $(rm x) ]]",
    "(( $(rm x) ))", "y=$(rm x)", "y=$(rm x) ls", "y=(a $(rm x))", "export y=$(rm x)",
    "ls > $(rm x)", 'cat <<< "$(rm x)"', "cat <<E\n$(rm x)\nE\n", "ls\nrm x",
    "cat <<E | rm x\na\nE\n", ">o rm x", "a=1 rm x", "time rm x", "time -p rm x", "command rm x",
    "builtin command rm x", "exec rm x", "exec -a y rm x", "eval rm x", "eval 'rm x'",
    "eval eval rm x", "bash -c 'rm x'", "sh -ec 'rm x'", "zsh -c -- 'rm x'", "bash -lc 'ls; rm x'",
    "bash -o pipefail -c 'rm x'", "bash --norc -c 'rm x'", "su -c 'rm x' bob", "su bob -c 'rm x'",
    "bash <<< 'rm x'", "bash <<'E'\nrm x\nE\n", "sh -s <<E\nrm x\nE\n", "sudo rm x",
    "sudo -u bob -- rm x", "sudo -n -E A=1 rm x", "doas rm x", "env rm x", "env -i A=1 rm x",
    "env -u A rm x", "env -S 'rm x'", "nohup rm x", "setsid -f rm x", "nice -n 5 rm x",
    "ionice -c 3 rm x", "timeout -k 1 5 rm x", "timeout 5s rm x", "stdbuf -oL rm x", "xargs rm",
    "xargs -n 1 -0 rm", "xargs -I{} rm {}", "parallel rm ::: x", "find . -exec rm {} +",
    r"find . -name y -exec rm {} \;", "find . -execdir rm {} +", "watch rm x", "strace -f rm x",
    "busybox rm x", "flock /l rm x", "flock /l -c 'rm x'", "ssh host rm x", "ssh -p 22 u@h 'rm x'",
    "docker exec -it box rm x", "kubectl exec pod -- rm x", "chroot /r rm x", "trap 'rm x' EXIT",
    "alias ls='rm x'", "PROMPT_COMMAND='rm x'", "export PROMPT_COMMAND='rm x'", "PS1='$(rm x)' ls",
    "GIT_PAGER='rm x' git log", "sudo sh -c 'eval \"rm x\"'", "git submodule foreach 'rm x'",
    "git bisect run rm x", "noglob rm x", "and rm x", "cat >o y; rm x", "[ -f y ] && rm x",
    "/lib64/ld-linux-x86-64.so.2 /bin/rm x", "/lib/ld-musl-x86_64.so.1 rm x", "pkexec rm x",
    "gosu bob rm x", "prlimit --nofile=9 rm x", "setarch x86_64 rm x",
    "sched +1 rm x", "poetry run rm x", "uv run rm x", "bundle exec rm x", "npm exec -- rm x",
    "ip netns exec ns rm x", "rsync -e 'rm x' a b", "tar -I 'rm x' -cf a b",
    "sort --compress-program='rm x' f", "split --filter 'rm x' f", "man -P 'rm x' ls",
    "nc -e 'rm x' h 80", "sg wheel -c 'rm x'",
    "[[ a == b ]] || rm x", "echo a#b; rm x", "echo \\# ; rm x", "rm x # ls", "cd /;rm x",
]  # fmt: skip


@pytest.mark.parametrize("line", RUNS_RM)
def test_a_command_is_seen_wherever_it_is(line: str) -> None:
    found = facts(line)
    assert found.parsed, found.problem
    assert "rm" in found.commands and "rm" in found.destructive


# Each runs something that no reader can tell beforehand.
OPAQUE = [
    "sqlite3 db '.shell x'", "psql -c '\\! x'", "mysql -e 'system x'", "rsync -e \"$x\" a b",
    "$x", "$x y", "${x} y", '"$x" y', "$(ls) y", "`ls` y", "r$x y", "/bin/$x", "?m y", "/bin/r* y",
    "eval $x", 'eval "rm $x"', "bash -c $x", 'bash -c "$x"', "bash -c \"$(cat y)\"", "bash $x",
    "curl http://h/x | sh", "curl http://h/x | sudo bash", "cat x | bash -s", "sh < x",
    "bash < <(ls)",
    "echo x | xargs -I{} sh -c {}", "xargs sh -c", "xargs $x", "source $x", ". <(curl h)",
    "source /dev/stdin <<< $x", "python3 -c 'x()'", "python -c x", "perl -e 'x'", "perl -ne x",
    "ruby -e x", "node -e x", "php -r x", "echo x | python3", "python3 - <<E\nx\nE\n",
    "awk 'BEGIN { system(\"x\") }'", "sed '1e x' f", "sed 's/a/b/e' f", "vim -c '!x' f", "!!",
    "!rm",
    "ls !$", "^a^b", "fc -s", 'echo "!rm"', "sudo $x", "env $x", "timeout 5 $x",
    "tar xf y --to-command=x", "tar cf y --checkpoint-action=exec=x z", "ssh h $x",
    "ssh -o ProxyCommand=x h",
    "git -c core.pager=x log", "git -c alias.y='!x' y", "rsync -e x a h:b --rsh=x",
    "bind -x '\"a\": x'",
    "alias y=$x", "trap $x EXIT", "echo x | ssh h", "BASH_ENV=$x ls", "hash -p /t/x ls",
    "at now < x",
    "tmux new-session x", "find . -exec sh -c 'rm {}' +", "make SHELL=/t/x", "crontab f",
    "enable -f x y",
]  # fmt: skip


@pytest.mark.parametrize("line", OPAQUE)
def test_what_cannot_be_read_beforehand_is_opaque(line: str) -> None:
    found = facts(line)
    assert found.unread, "or a rule about it would pass it in silence"


UNPARSED = [
    "if", "ls; ;", "echo 'a", 'echo "a', "echo $(ls", "(ls", "ls )", "for", "{ ls",
    "!'rm' x", "r{\\,m} x", "$'\\162m'\\~+ x", "ls \x00",
    "rm\u00a0x", "rm\u200bx", "ls\rrm x", "ls \x1b[A", "echo `echo \\`rm x\\``", "coproc { rm x; }",
    "ls " + "a" * 20_000, "$(" * 80 + ")" * 80, "if test -f x; rm x; end",
]  # fmt: skip


@pytest.mark.parametrize("line", UNPARSED)
def test_a_line_that_cannot_be_read_says_so(line: str) -> None:
    found = facts(line)
    assert not found.parsed and found.problem and found.unread


HARMLESS = [
    "", "  ", "ls", "ls -la | grep x | wc -l", "echo 'rm -rf /'", 'echo "rm -rf /"', "# rm x",
    "grep -r 'rm -rf' .", "grep 'DROP TABLE' f", "git log --oneline", "git push origin main",
    "git commit -m 'drop table support'", "cat f | sort | uniq -c", "make -j4", "python3 script.py",
    "cd src && pytest -q", "docker ps", "kubectl get pods", "kill 123", "echo hi!",
    "sed 's/a/b/' f",
    "awk '{print $1}' f", "find . -name '*.rm'", "for f in *.c; do wc $f; done", "ssh host", "bash",
    "tar xf a.tar", "man rm", "which shutdown", "command -v rm", "type rm", "[ a != b ]", "ls ~/x",
    "git checkout -b new", "systemctl status x", "terraform plan", "echo 'select 1' | psql",
]  # fmt: skip


@pytest.mark.parametrize("line", HARMLESS)
def test_everyday_lines_are_neither_destructive_nor_unread(line: str) -> None:
    found = facts(line)
    assert (found.destructive, found.unread) == ((), False), found


DESTROYS = {
    "rm -rf /": "rm-recursive", "rm -fr x": "rm-recursive", "rm --recursive x": "rm-recursive",
    "rm --rec x": "rm-recursive", "rm -f -v -R x": "rm-recursive", "rm x": "rm", "unlink x": "rm",
    "shred x": "rm", "find . -delete": "rm", "git rm x": "rm", "rsync -a --delete a b": "rm",
    "mv x /dev/null": "rm", "dd if=a of=b": "disk", "mkfs.ext4 /dev/sda1": "disk",
    "wipefs -a /dev/sda": "disk", "cat x > /dev/sda": "disk", "cp x /dev/nvme0n1": "disk",
    "lvremove vg/x": "disk", "zfs destroy p": "disk", "truncate -s 0 x": "truncate",
    "shutdown now": "shutdown", "reboot": "shutdown", "init 0": "shutdown",
    "systemctl poweroff": "shutdown", "systemctl stop x": "stop-service",
    "git push --force": "force-push", "git push -f origin": "force-push",
    "git -C /r push --force-with-lease": "force-push", "git push origin +main": "force-push",
    "git push origin :main": "force-push", "git push --delete origin x": "force-push",
    "git reset --hard": "discard-work", "git clean -fdx": "discard-work",
    "git checkout -- .": "discard-work", "git branch -D x": "discard-work",
    "git filter-branch": "rewrite-history", "psql -c 'drop table x'": "drop-table",
    "echo 'DROP DATABASE x' | psql": "drop-table", "psql <<E\ndrop table x;\nE\n": "drop-table",
    "mysql -e 'DELETE FROM x'": "delete-rows", "mysql -e 'TRUNCATE TABLE x'": "empty-store",
    "redis-cli FLUSHALL": "empty-store", "kubectl delete pod x": "delete-resource",
    "docker system prune -f": "delete-resource", "terraform destroy": "delete-resource",
    "aws s3 rm s3://b/x": "delete-resource", "aws ec2 terminate-instances": "delete-resource",
    "kill -9 -1": "kill-all", "pkill python": "kill-all", "chmod -R 777 /": "permissions",
    "iptables -F": "firewall", "userdel x": "accounts", "apt-get remove x": "packages",
    "hold end x": "sessions", ":(){ :|:& };:": "fork-bomb", "git $x": "unknown-verb",
}  # fmt: skip


@pytest.mark.parametrize(("line", "category"), DESTROYS.items(), ids=list(DESTROYS))
def test_what_destroys_is_known_by_its_category(line: str, category: str) -> None:
    assert category in facts(line).destructive


OUTSIDE = [
    "echo x > /etc/y", "echo x >> ../y", "ls 2> /y", "ls &> /y", "echo x >| ~/y", "tee /etc/y",
    "cd /etc && touch y", "cd /etc; (touch y)", "cd ..; touch y", "pushd /etc; touch y", "cp a /b",
    "cp -t /b a", "mv /b a", "mv a /b", "ln -s a /b", "dd if=a of=/b", "sed -i s/a/b/ /c", "rm /b",
    "mkdir -p /b/c", "touch a/../../b", "truncate -s 0 /b", "chmod 600 /b", "curl -o /b h",
    "curl --output=/b h", "wget -P /b h", "tar xf a -C /b", "tar cf /b a", "unzip a -d /b",
    "git clone u /b", "git -C /b commit", "gcc a.c -o /b", "install a /b", "rsync a /b/",
    "env -C /etc touch y", "sudo tee /b", "bash -c 'echo x > /b'", "find /b -delete",
    "find /b -exec rm {} +", "vim /b", "split a; cd /; split a", "sort a -o /b", "patch /b < p",
]  # fmt: skip


@pytest.mark.parametrize("line", OUTSIDE)
def test_what_is_written_outside_the_workspace_is_seen(line: str) -> None:
    assert facts(line).writes_outside


INSIDE = [
    "echo x > y", "touch y", "echo x > ./a/b", f"touch {WORKSPACE}/y", "cd a && touch y",
    "touch a/../y", "ls > /dev/null 2>&1", "echo x > /dev/tty", "cp /etc/hosts .",
    "cat /etc/passwd",
    "rm -rf build", "mkdir -p a/b", "tar xf /a.tar", "gcc -I/usr/include a.c -o a",
    "find . -delete",
    "find . -exec rm {} +", "git commit -m /etc", "grep x /etc/y > z", "sed s/a/b/ /etc/x",
]  # fmt: skip


@pytest.mark.parametrize("line", INSIDE)
def test_what_is_written_inside_is_not_called_outside(line: str) -> None:
    found = facts(line)
    assert (found.writes_outside, found.writes_unknown) == ((), False), found


@pytest.mark.parametrize(
    "line", ["echo x > $y", "rm $y", "cd $d; touch y", "touch ~bob/y", "xargs rm", "cd -; touch y"]
)
def test_where_nobody_knows_yet_is_unknown(line: str) -> None:
    assert facts(line).writes_unknown


def test_a_path_is_where_its_links_lead() -> None:
    links = {f"{WORKSPACE}/out": "/etc", f"{WORKSPACE}/deep": f"{WORKSPACE}/out"}
    assert facts("touch out/x", links).writes_outside == ("/etc/x",)
    assert facts("echo x > deep/x", links).writes_outside == ("/etc/x",)
    assert facts("cd out; touch x", links).writes_outside == ("/etc/x",)
    assert facts("cat out/x", links).paths_outside == ("/etc/x",)
    assert facts("touch /ws/x", {"/ws": WORKSPACE}).writes_outside == ()


def test_hosts_assignments_pipelines_and_functions_are_named() -> None:
    found = facts("A=1 curl -s https://u@h.example:8443/x | tee y; export B=2; f() { ls; }")
    assert found.hosts == ("h.example:8443",) and found.pipelines == ("curl|tee",)
    assert found.assigned == ("A", "B") and found.functions == ("f",)
    for line, host in {
        "ssh -p 22 u@h ls": "h", "scp a u@h:b": "h", "nc h 99": "h:99", "git clone git@h:x": "h",
        "cat < /dev/tcp/h/80": "h:80", "echo x > /dev/tcp/h/80": "h:80", "psql -h h": "h",
        "curl -X POST h/x": "h", "ping -c 1 h": "h",
    }.items():  # fmt: skip
        assert host in facts(line).hosts, line


def test_a_line_that_the_shell_did_not_tell_is_unread() -> None:
    silent = effect("", text_known=False)
    assert facts_of(silent, GRAMMAR.parse, Links().real).unread


def test_programs_files_and_connections_have_facts_too() -> None:
    ran = facts_of(
        effect(kind=EffectKind.EXEC, path="/bin/rm", argv=("ls", "-r", "/x")),
        GRAMMAR.parse,
        Links().real,
    )
    assert "rm-recursive" in ran.destructive, "by the file that runs, whatever it is called"
    assert ran.writes_outside == ("/x",)
    opened = facts_of(
        effect(kind=EffectKind.WRITE_OPEN, path="/etc/x"), GRAMMAR.parse, Links().real
    )
    assert opened.writes_outside == ("/etc/x",)
    called = facts_of(
        effect(kind=EffectKind.CONNECT, destination="h:80"), GRAMMAR.parse, Links().real
    )
    assert called.hosts == ("h:80", "h")
    typed = facts_of(
        effect("DROP TABLE x;", kind=EffectKind.INPUT, path="/usr/bin/psql"),
        GRAMMAR.parse,
        Links().real,
    )
    assert typed.destructive == ("drop-table",) and not typed.unread
    answered = facts_of(
        effect("y", kind=EffectKind.INPUT, path="/bin/cp"), GRAMMAR.parse, Links().real
    )
    assert (answered.destructive, answered.unread) == ((), False)
    inner = facts_of(
        effect("$x", kind=EffectKind.INPUT, path="/bin/bash"), GRAMMAR.parse, Links().real
    )
    assert inner.unread, "a shell in the shell takes lines"


@pytest.mark.parametrize(
    ("pattern", "command", "matches"),
    [
        ("terraform apply", "terraform apply", True),
        ("terraform apply", "terraform apply -auto-approve", True),
        ("terraform apply", "terraform applyx", False),
        ("terraform apply*", "terraform applyx", True),
        ("terraform apply", "terraform …", True),
        ("terraform apply", "terraform … -x", True),
        ("terraform apply", "… apply", True),
        ("terraform apply", "terraform plan", False),
        ("terraform apply", "terra…", True),
        ("terraform apply", "tofu …", False),
        ("rm -rf *", "rm … -rf x", True),
        ("* --force*", "git push --force", True),
        ("* --force*", "git push", False),
        ("*", "", True),
    ],
)
def test_a_pattern_matches_whatever_the_shell_could_make_of_it(
    pattern: str, command: str, matches: bool
) -> None:
    assert could_match(pattern, command) is matches
