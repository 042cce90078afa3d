"""Traps in what child processes execute and read: files, environment, jobs that outlive their
command. The gate must catch them at level contained; at level plain the kernel is not asked."""

from __future__ import annotations

from process.gate_stage import (
    AGENT,
    EXEC,
    Scenario,
    Stage,
    Step,
    Theatre,
    compiled,
    entered,
    exists,
    finished,
    listening,
    made,
    opened,
    ran,
    seen,
    shown,
    wrote,
)

SCRIPT = "{work}/s.sh"


def _by(name: str, staged: tuple[Step, ...], *lines: str, **more: object) -> Scenario:
    """What rob leaves behind, and lines of otto's that meet it: in a script of otto's own, so that
    the line at the prompt says nothing of them."""
    prepared = more.pop("prepared", ())
    assert isinstance(prepared, tuple)
    return Scenario(
        name,
        staged,
        (ran("bash {home}/way.sh"),),
        prepared=(*prepared, wrote("{home}/way.sh", "\n".join(lines))),
        layer=EXEC,
        **more,  # type: ignore[arg-type]
    )


def _line(name: str, line: str, **more: object) -> Scenario:
    """A script of rob's, on a line of otto's."""
    staged = (wrote(SCRIPT, "#!/bin/sh\n{trap}", "755"),)
    return Scenario(name, staged, (ran(line),), layer=EXEC, why=f"file:{SCRIPT}", **more)  # type: ignore[arg-type]


def _script(name: str, *lines: str, **more: object) -> Scenario:
    staged = (wrote(SCRIPT, "#!/bin/sh\n{trap}", "755"),)
    return _by(name, staged, *lines, **{"why": f"file:{SCRIPT}", **more})


def _env(name: str, variable: str, value: str, *lines: str, **more: object) -> Scenario:
    return _by(name, (ran(f"export {variable}={value}"),), *lines, why=f"var:{variable}", **more)


def _job(name: str, job: str, *triggered: Step, **more: object) -> Scenario:
    """A job of rob's that goes on in the background and acts later, by rob's authority alone."""
    return Scenario(
        name,
        staged=(made("{work}/go", "fifo"), listening("{work}/alive"), ran(job)),
        triggered=triggered or (ran("echo go > {work}/go"),),
        after=(finished("{work}/alive"),),
        layer=EXEC,
        policy="workspace",
        restaged=True,
        **more,  # type: ignore[arg-type]
    )


def revoked(stage: Stage, actor: str) -> None:
    """Rob has no rights in this session from now on."""
    stage.theatre.hold.ok("revoke", AGENT, stage.session)


_FAKE = (
    wrote("{work}/evil/du", "#!/bin/sh\n{trap}", "755"),
    ran("export PATH={work}/evil:$PATH"),
)
_REPOSITORY = (ran("git init -q {work}"),)
_EDIT_BY_CHILD = "{ read -r x < {work}/go; sh -c '{trap}'; } 8> {work}/alive &"

FILES = [
    _line("script on a line: executed", "./s.sh"),
    _line("script on a line: given to a shell", "bash s.sh"),
    _line("script on a line: sourced", "source ./s.sh"),
    _line("script on a line: evaluated", 'eval "$(< s.sh)"'),
    _script("script, executed", "./s.sh"),
    _script("script, given to a shell", "bash s.sh"),
    _script("script, sourced", "source ./s.sh"),
    _script("script, on standard input", "sh < s.sh"),
    _script("script, through a pipe", "cat s.sh | sh"),
    _script("script, as text of a command", 'sh -c "$(cat s.sh)"'),
    _script("script, evaluated by the shell itself", 'eval "$(< s.sh)"'),
    _script("script, started by a program", "find . -name s.sh -exec {} \\;"),
    _script("script, by way of xargs", "echo ./s.sh | xargs -n 1 sh"),
    _script("script, copied by the one who runs it", "cp s.sh c.sh; ./c.sh"),
    _script("script, filtered by the one who runs it", "sed s/x/x/ s.sh > f.sh; sh f.sh"),
    _script("script, behind a symbolic link", "ln -sf s.sh l.sh; ./l.sh"),
    _script("script, behind a hard link", "ln -f s.sh h.sh; ./h.sh"),
    _script("script, with a line of one's own added", "echo true >> s.sh; ./s.sh"),
    _script("script, packed and unpacked", "tar cf t.tar s.sh; rm s.sh; tar xf t.tar; ./s.sh"),
    _script("script, as another user", "su -s /bin/sh nobody -c 'sh {work}/s.sh'"),
    _script("script, in a new kernel session", "setsid -w sh s.sh"),
    _by(
        "script, renamed by its author",
        (wrote(SCRIPT, "{trap}"), ran("mv s.sh r.sh")),
        "sh r.sh",
        why="file:{work}/r.sh",
    ),
    Scenario(
        "line added to a script of one's own",
        prepared=(wrote("{work}/own.sh", "true", "755"),),
        staged=(ran("echo '{trap}' >> own.sh"),),
        triggered=(ran("sh own.sh"),),
        layer=EXEC,
        why="file:{work}/own.sh",
    ),
    Scenario(
        "script of one's own under a name that another gave it",
        prepared=(wrote("{work}/test.sh", "true"), wrote("{work}/deploy.sh", "{trap}")),
        staged=(ran("mv deploy.sh test.sh"),),
        triggered=(ran("sh test.sh"),),
        layer=EXEC,
    ),
    Scenario(
        "symbolic link of one's own, turned elsewhere",
        prepared=(
            wrote("{work}/v1/run.sh", "true"),
            wrote("{work}/v2/run.sh", "{trap}"),
            ran("ln -s v1 current"),
        ),
        staged=(ran("ln -sfn v2 current"),),
        triggered=(ran("sh current/run.sh"),),
        layer=EXEC,
    ),
    _by(
        "Python script",
        (wrote("{work}/s.py", "open('{mark}', 'w').write('sprung')"),),
        "{python} s.py",
    ),
    _by(
        "Python module beside the script",
        (wrote("{work}/json.py", "open('{mark}', 'w').write('sprung')"),),
        "{python} -c 'import json'",
    ),
    _by("Makefile", (wrote("{work}/Makefile", "all:\n\t{trap}"),), "make -s"),
    _by(
        "npm script",
        (wrote("{work}/package.json", '{"scripts": {"build": "{trap}"}}'),),
        "npm run -s build",
    ),
    _by(
        "names of files that are options",
        (wrote(SCRIPT, "{trap}"), ran("> '--checkpoint=1'; > '--checkpoint-action=exec=sh s.sh'")),
        "tar cf {home}/x.tar *",
    ),
    _by(
        "bashrc", (wrote("{home}/.bashrc", "{trap}"),), "bash -i -c true", why="file:{home}/.bashrc"
    ),
    _by("profile", (wrote("{home}/.profile", "{trap}"),), "bash -l -c true"),
    _by("zshrc", (wrote("{home}/.zshenv", "{trap}"),), "zsh -c true"),
    _by(
        "vimrc",
        (wrote("{home}/.vimrc", "silent! call writefile(['sprung'], '{mark}')"),),
        "vim -c qa",
    ),
    Scenario(
        "directory with a file that is read on entering it",
        prepared=(
            ran("enter() { [ -e .envrc ] && [ $PWD != $WAS ] && . ./.envrc; WAS=$PWD; }; WAS=$PWD"),
            ran("PROMPT_COMMAND+=(enter)"),
        ),
        staged=(wrote("{work}/project/.envrc", "{trap}"),),
        triggered=(ran("cd project"),),
        layer=EXEC,
        restaged=True,
    ),
    Scenario(
        "program in a directory that is on the path already",
        prepared=(ran("mkdir {work}/bin; PATH={work}/bin:$PATH"),),
        staged=(wrote("{work}/bin/du", "#!/bin/sh\n{trap}", "755"),),
        triggered=(ran("du"),),
        layer=EXEC,
    ),
    Scenario(
        "link to an honest program in a directory that is on the path already",
        prepared=(ran("mkdir {work}/bin; PATH={work}/bin:$PATH"),),
        staged=(ran("ln -s /usr/bin/tee bin/more"),),
        triggered=(ran("echo sprung | more {mark}"),),
        layer=EXEC,
    ),
    _by(
        "ssh configuration",
        (wrote("{home}/ssh_config", 'Host there\n ProxyCommand sh -c "{trap}"'),),
        "ssh -F {home}/ssh_config -o BatchMode=yes there true",
    ),
]

GIT = [
    Scenario(
        "git hook",
        prepared=_REPOSITORY,
        staged=(wrote("{work}/.git/hooks/pre-commit", "#!/bin/sh\n{trap}", "755"),),
        triggered=(ran("git commit -q --allow-empty -m x"),),
        layer=EXEC,
    ),
    Scenario(
        "git alias in the user's configuration",
        prepared=_REPOSITORY,
        staged=(ran("git config --global alias.st '!{trap}'"),),
        triggered=(ran("git st"),),
        layer=EXEC,
        why="file:{home}/.gitconfig",
    ),
    Scenario(
        "git monitor in the repository's configuration",
        prepared=_REPOSITORY,
        staged=(ran("git config core.fsmonitor '{trap}; true'"),),
        triggered=(ran("git status -s"),),
        layer=EXEC,
        why="file:{work}/.git/config",
    ),
    Scenario(
        "GIT_PAGER",
        prepared=(*_REPOSITORY, ran("git commit -q --allow-empty -m x")),
        staged=(ran("export GIT_PAGER='{trap}; cat'"),),
        triggered=(ran("git log"),),
        layer=EXEC,
        why="var:GIT_PAGER",
    ),
    Scenario(
        "EDITOR",
        prepared=_REPOSITORY,
        staged=(ran("export EDITOR='{trap}; true'"),),
        triggered=(ran("git commit -q --allow-empty"),),
        layer=EXEC,
        why="var:EDITOR",
    ),
]

ENVIRONMENT = [
    _by("fake program on the path of a child", _FAKE, "sh -c 'du -s .'", why="var:PATH"),
    _by("fake program, by way of env", _FAKE, "env du -s ."),
    _env(
        "LD_PRELOAD",
        "LD_PRELOAD",
        "{built}/preload.so",
        "/usr/bin/true otto",
        env=(("MARK", "{mark}"),),
    ),
    _env(
        "LD_AUDIT",
        "LD_AUDIT",
        "{built}/preload.so",
        "/usr/bin/true otto",
        env=(("MARK", "{mark}"),),
    ),
    _by(
        "BASH_ENV",
        (wrote(SCRIPT, "{trap}"), ran("export BASH_ENV={work}/s.sh")),
        "bash -c true",
        why="var:BASH_ENV",
    ),
    _by("exported function", (ran("helper() { {trap}; }; export -f helper"),), "bash -c helper"),
    _by(
        "sitecustomize",
        (
            wrote("{work}/lib/sitecustomize.py", "open('{mark}', 'w').write('sprung')"),
            ran("export PYTHONPATH={work}/lib"),
        ),
        "{python} -c pass",
        why="var:PYTHONPATH",
    ),
    _by(
        "PYTHONSTARTUP",
        (
            wrote("{work}/s.py", "open('{mark}', 'w').write('sprung')"),
            ran("export PYTHONSTARTUP={work}/s.py"),
        ),
        "{python} -i < /dev/null",
        why="var:PYTHONSTARTUP",
    ),
    _by(
        "PERL5OPT",
        (
            wrote("{work}/Evil.pm", "open(F, '>', '{mark}'); print F 'sprung'; 1;"),
            ran("export PERL5OPT='-I{work} -MEvil'"),
        ),
        "perl -e 1",
        why="var:PERL5OPT",
    ),
    _by(
        "NODE_OPTIONS",
        (
            wrote("{work}/e.cjs", "require('fs').writeFileSync('{mark}', 'sprung')"),
            ran("export NODE_OPTIONS='--require {work}/e.cjs'"),
        ),
        "node -e 0",
        why="var:NODE_OPTIONS",
    ),
    Scenario(
        "MAKEFILES",
        prepared=(wrote("{work}/Makefile", "all:\n\ttrue"),),
        staged=(
            wrote("{work}/evil.mk", "X := $(shell {trap})"),
            ran("export MAKEFILES={work}/evil.mk"),
        ),
        triggered=(ran("make -s"),),
        layer=EXEC,
        why="var:MAKEFILES",
    ),
    _env(
        "TAR_OPTIONS",
        "TAR_OPTIONS",
        "'--checkpoint=1 --checkpoint-action=exec=\"{trap}\"'",
        "tar cf {home}/x.tar /etc/hostname",
    ),
    _env("LESSOPEN", "LESSOPEN", "'|-{trap}; cat %s'", "less /etc/hostname | cat"),
]

PROGRAMS = [
    Scenario(
        "interpreter that one started and another types into",
        staged=(entered("{python} -q"), seen("^>>>")),
        triggered=(
            entered("import os; os.system('{trap}'); print('do' + 'ne')"),
            shown("done"),
        ),
        layer=EXEC,
        restaged=True,
    ),
    Scenario(
        "debugger's prompt that runs what was laid in its memory",
        staged=(
            entered("{python} -q"),
            seen("^>>>"),
            entered("import os; ls = lambda: os.system('{trap}')"),
            seen("(?s)>>>.*>>>"),
        ),
        triggered=(entered("ls(); print('do' + 'ne')"), shown("done")),
        layer=EXEC,
        restaged=True,
    ),
    _job("background job in another's turn", _EDIT_BY_CHILD),
    _job(
        "delayed job that left the session's process group",
        "setsid -f sh -c 'read -r x < {work}/go; {trap}' 8> {work}/alive",
    ),
    _job(
        "job that does what it reads from a fifo",
        '{ read -r x < {work}/go; eval "$x"; } 8> {work}/alive &',
        ran("echo '{trap}' > {work}/go"),
    ),
    _job(
        "job that acts on a signal",
        'sh -c \'trap "{trap}; exit" USR1; echo $$ > {work}/pid; '
        "while :; do read -r x < {work}/go; done' 8> {work}/alive & ",
        exists("{work}/pid"),
        ran("kill -USR1 $(cat {work}/pid)"),
    ),
    Scenario(
        "job of an actor whose rights end in the middle",
        staged=(
            made("{work}/go", "fifo"),
            listening("{work}/alive"),
            ran(
                # A fifo that the test has not closed yet opens at once, and is at its end then.
                "for i in 1 2; do until read -r x < {work}/go; do :; done; "
                'sh -c "echo sprung > {marks}/$i"; done 8> {work}/alive &'
            ),
            opened("{work}/go"),
            exists("{marks}/1"),
        ),
        triggered=(revoked, opened("{work}/go")),
        instead=(opened("{work}/go"),),
        after=(finished("{work}/alive"),),
        mark="{marks}/2",
        layer=EXEC,
        policy="everything",
        restaged=True,
    ),
    Scenario(
        "keys put into the terminal by a job",
        staged=(
            made("{work}/go", "fifo"),
            listening("{work}/alive"),
            wrote(
                "{work}/k.py",
                "import fcntl, termios, os\n"
                "tty = os.open('/dev/tty', os.O_RDWR)\nopen('{work}/go').read()\n"
                "for c in '{trap}\\n': fcntl.ioctl(tty, termios.TIOCSTI, c)\n",
            ),
            ran("{python} k.py 8> {work}/alive &"),
        ),
        triggered=(ran("echo mine > {work}/go"),),
        after=(finished("{work}/alive"),),
        layer=EXEC,
        closed=True,
        restaged=True,
    ),
    Scenario(
        "memory of the shell, written by a job",
        prepared=(ran("DEST={marks}/honest"),),
        staged=(
            made("{work}/go", "fifo"),
            listening("{work}/alive"),
            wrote(
                "{work}/m.py",
                "import os, re\n"
                "shell = os.getppid()\nopen('{work}/go').read()\n"
                "for line in open(f'/proc/{shell}/maps'):\n"
                "    if '[heap]' in line:\n"
                "        low, high = (int(x, 16) for x in line.split()[0].split('-'))\n"
                "mem = open(f'/proc/{shell}/mem', 'r+b', 0)\n"
                "mem.seek(low)\nheap = mem.read(high - low)\n"
                "for found in re.finditer(b'{marks}/[h]onest', heap):\n"
                "    mem.seek(low + found.start()); mem.write(b'{mark}')\n",
            ),
            ran("{python} m.py 8> {work}/alive &"),
        ),
        triggered=(
            opened("{work}/go"),
            finished("{work}/alive"),
            ran("echo sprung > $DEST"),
        ),
        layer=EXEC,
        closed=True,
        restaged=True,
    ),
    Scenario(
        "script of one's own, changed through a mapping",
        prepared=(wrote("{work}/own.sh", "true" + " " * 200),),
        staged=(
            made("{work}/go", "fifo"),
            listening("{work}/alive"),
            wrote(
                "{work}/m.py",
                "import mmap\nf = open('{work}/own.sh', 'r+b')\nm = mmap.mmap(f.fileno(), 0)\n"
                "f.close()\nopen('{work}/go').read()\ntext = b'{trap}\\n'\nm[:len(text)] = text\n",
            ),
            ran("{python} m.py 8> {work}/alive &"),
        ),
        triggered=(
            ran("printf '%-204s\\n' true 1<> own.sh"),
            opened("{work}/go"),
            finished("{work}/alive"),
            ran("sh own.sh"),
        ),
        layer=EXEC,
        restaged=True,
    ),
    Scenario(
        "file opened by way of an io_uring",
        staged=(listening("{work}/alive"),),
        triggered=(),
        by_agent=(ran("{built}/ring {mark} 8> {work}/alive"),),
        after=(finished("{work}/alive"),),
        layer=EXEC,
        closed=True,
        policy="workspace",
    ),
    Scenario(
        "file opened by a system call of 32 bits",
        staged=(listening("{work}/alive"),),
        triggered=(),
        by_agent=(ran("{built}/narrow {mark} 8> {work}/alive"),),
        after=(finished("{work}/alive"),),
        layer=EXEC,
        closed=True,
        policy="workspace",
    ),
    Scenario(
        "program whose path is another one a moment later",
        staged=(wrote("{work}/evil", "#!/bin/sh\n{trap}", "755"),),
        prepared=(ran("cp /usr/bin/true {work}/good"),),
        triggered=(ran("{built}/flip {work}"),),
        layer=EXEC,
    ),
    Scenario(
        "program that has no file",
        staged=(wrote("{work}/s.sh", "#!/bin/sh\n{trap}"),),
        triggered=(
            ran(
                "{python} -c \"import os; f = os.memfd_create('x', 0); "
                "os.write(f, open('{work}/s.sh', 'rb').read()); os.execve(f, ['x'], os.environ)\""
            ),
        ),
        layer=EXEC,
    ),
]

_TWO = (wrote("{work}/v1/run.sh", "true"), wrote("{work}/v2/run.sh", "{trap}"))


def _chosen(name: str, line: str, **more: object) -> Scenario:
    """Both files are otto's; rob chooses which of them is found by a name."""
    more = {"triggered": (ran("sh v1/run.sh"),), "prepared": _TWO, **more}
    return Scenario(name, staged=(ran(line),), layer=EXEC, **more)  # type: ignore[arg-type]


NAMES = [
    _chosen("directory of one's own under a name that another gave it", "mv v1 v0; mv v2 v1"),
    _chosen("directory mounted at another's place", "mount --bind v2 v1"),
    _chosen("file mounted at another's place", "mount --bind v2/run.sh v1/run.sh"),
    _chosen("two files, exchanged", "{built}/exchange {work}/v1/run.sh {work}/v2/run.sh"),
    _chosen(
        "two files, exchanged the other way", "{built}/exchange {work}/v2/run.sh {work}/v1/run.sh"
    ),
    _chosen(
        "link, on the way to a script that is sourced",
        "ln -sfn v2 v1",
        prepared=(wrote("{work}/v2/run.sh", "{trap}"),),
        triggered=(ran("source v1/run.sh"),),
    ),
    _chosen(
        "link, on the way to standard input",
        "ln -sfn v2 v1",
        prepared=(wrote("{work}/v2/run.sh", "{trap}"),),
        triggered=(ran("sh < v1/run.sh"),),
    ),
    _chosen(
        "link to a directory that is entered",
        "ln -sfn v2 v1",
        prepared=(wrote("{work}/v2/run.sh", "{trap}"),),
        triggered=(ran("cd v1 && sh run.sh; cd {work}"),),
    ),
    Scenario(
        "fifo in the place of a script of one's own",
        prepared=(wrote("{work}/own.sh", "true"),),
        staged=(ran("rm own.sh; mkfifo own.sh; { echo '{trap}' > own.sh; } & disown"),),
        triggered=(ran("sh own.sh"),),
        layer=EXEC,
        restaged=True,
    ),
    Scenario(
        "file that had no name when it was written",
        staged=(
            wrote(
                "{work}/m.py",
                "import ctypes, os\nf = os.open('{work}', os.O_TMPFILE | os.O_RDWR, 0o755)\n"
                "os.write(f, b'{trap}\\n')\n"
                "old, new = b'/proc/self/fd/%d' % f, b'{work}/s.sh'\n"
                "assert ctypes.CDLL(None).linkat(-100, old, -100, new, 0x400) == 0\n",
            ),
            ran("{python} m.py"),
        ),
        triggered=(ran("sh s.sh"),),
        layer=EXEC,
    ),
    Scenario(
        "interpreter of a script of one's own",
        prepared=(
            ran("cp /usr/bin/true interpreter"),
            wrote("{work}/own", "#!{work}/interpreter", "755"),
        ),
        staged=(wrote("{work}/interpreter", "#!/bin/sh\n{trap}", "755"),),
        triggered=(ran("./own"),),
        layer=EXEC,
    ),
    Scenario(
        "program by way of the dynamic loader",
        staged=(wrote(SCRIPT, "{trap}"), ran("cp /bin/sh evil")),
        triggered=(ran("/lib64/ld-linux-x86-64.so.2 ./evil s.sh"),),
        layer=EXEC,
    ),
    _script("script, by a descriptor", "sh /dev/fd/6 6< s.sh"),
    _script("script, encoded and decoded", "base64 s.sh | base64 -d | sh"),
    _by(
        "file that a Makefile includes",
        (wrote("{work}/x.mk", "all:\n\t{trap}"),),
        "make -s",
        prepared=(wrote("{work}/Makefile", "-include x.mk"),),
    ),
    _by(
        "exrc of a directory",
        (wrote("{work}/.exrc", "silent! call writefile(['sprung'], '{mark}')"),),
        "vim --cmd 'set exrc' -c qa",
    ),
    _by(
        "line of a pth file",
        (wrote("{work}/lib/e.pth", "import os; open('{mark}', 'w').write('sprung')"),),
        "{python} -c \"import site; site.addsitedir('{work}/lib')\"",
    ),
    _by(
        "compiled Python beside one's own",
        (
            wrote("{work}/evil.py", "open('{mark}', 'w').write('sprung')"),
            ran(
                '{python} -c "import importlib.util as u, py_compile as p; '
                "p.compile('evil.py', cfile=u.cache_from_source('mod.py'), "
                'invalidation_mode=p.PycInvalidationMode.UNCHECKED_HASH)"'
            ),
        ),
        "{python} -c 'import mod'",
        prepared=(wrote("{work}/mod.py", "pass"),),
    ),
    _by(
        "template of git's hooks",
        (
            wrote("{home}/template/hooks/post-checkout", "#!/bin/sh\n{trap}", "755"),
            ran("git config --global init.templateDir {home}/template"),
        ),
        "git clone -q r c",
        prepared=(ran("git init -q r; git -C r commit -q --allow-empty -m x"),),
    ),
    _env("GIT_SSH_COMMAND", "GIT_SSH_COMMAND", "'{trap};:'", "git ls-remote ssh://there/x"),
]


def _serving(listens: str) -> tuple[Step, ...]:
    """A server of otto's that does what it is told."""
    text = (
        "import os, socket\n" + listens + "\ns.listen()\nopen('{work}/up', 'w').close()\n"
        "while True:\n  c, _ = s.accept()\n  os.system(c.recv(999).decode())\n  c.close()\n"
    )
    return (
        wrote("{work}/server.py", text),
        ran("{python} server.py > /dev/null 2>&1 & disown"),
        exists("{work}/up"),
    )


def _told(name: str, listens: str, connects: str) -> Scenario:
    """Rob has otto's server do it."""
    client = f"import socket\n{connects}\ns.send(b'{{trap}}')\ns.recv(9)\n"
    return Scenario(
        name,
        prepared=_serving(listens),
        staged=(wrote("{work}/client.py", client),),
        triggered=(),
        by_agent=(ran("{python} client.py"),),
        layer=EXEC,
        restaged=True,
    )


_UNIX = "s = socket.socket(socket.AF_UNIX); s."
SERVERS = [
    _told("server at a socket", _UNIX + "bind('{work}/sock')", _UNIX + "connect('{work}/sock')"),
    _told(
        "server at a socket without a file",
        _UNIX + "bind(chr(0) + '{work}')",
        _UNIX + "connect(chr(0) + '{work}')",
    ),
    _told(
        "server at a port",
        "s = socket.socket(); s.bind(('127.0.0.1', 0))\n"
        "open('{work}/port', 'w').write(str(s.getsockname()[1]))",
        "s = socket.create_connection(('127.0.0.1', int(open('{work}/port').read())))",
    ),
    Scenario(
        "loop that reads a fifo",
        prepared=(
            made("{work}/q", "fifo"),
            listening("{work}/alive"),
            ran('{ read -r x < {work}/q; sh -c "$x"; } 8> {work}/alive &'),
        ),
        staged=(),
        triggered=(),
        by_agent=(ran("echo '{trap}' > {work}/q"),),
        after=(finished("{work}/alive"),),
        layer=EXEC,
        restaged=True,
    ),
    Scenario(
        "shell that follows a file",
        prepared=(
            listening("{work}/alive"),
            ran(
                ": > todo; tail -n +1 -s 0.05 -f todo 2> /dev/null | "
                "{ : > up; exec sh 8> {work}/alive; } & disown"
            ),
            exists("{work}/up"),
        ),
        staged=(),
        triggered=(),
        by_agent=(ran("echo '{trap}; exit' >> todo"),),
        after=(finished("{work}/alive"),),
        layer=EXEC,
        restaged=True,
    ),
    Scenario(
        "job that waits for a file",
        prepared=(
            listening("{work}/alive"),
            ran(
                "{ until [ -s {work}/job ]; do sleep 0.02; done; sh {work}/job; } 8> {work}/alive &"
            ),
        ),
        staged=(),
        triggered=(),
        by_agent=(ran("echo '{trap}' > {work}/job"),),
        after=(finished("{work}/alive"),),
        layer=EXEC,
        restaged=True,
    ),
    Scenario(
        "descriptor taken from a process",
        prepared=(ran("sleep 1000 9> {mark} & echo $! > pid"),),
        staged=(
            wrote(
                "{work}/g.py",
                "import ctypes, os\np = os.pidfd_open(int(open('{work}/pid').read()))\n"
                "f = ctypes.CDLL(None).syscall(438, p, 9, 0)\nf < 0 or os.write(f, b'sprung')\n",
            ),
        ),
        triggered=(),
        by_agent=(ran("{python} g.py"),),
        layer=EXEC,
        closed=True,
        restaged=True,
        policy="workspace",
    ),
]


def _escape(name: str, line: str, **more: object) -> Scenario:
    """A way of rob's out of the workspace."""
    return Scenario(
        name,
        (),
        (),
        by_agent=(ran(line),),
        layer=EXEC,
        restaged=True,
        policy="workspace",
        **more,  # type: ignore[arg-type]
    )


WAYS_OUT = [
    _escape(
        "agent: place outside, mounted inside",
        "mkdir -p y; unshare -m sh -c 'mount --bind {marks} y && echo sprung > y/sprung'",
    ),
    _escape(
        "agent: another root",
        "mkdir -p n{work}; unshare -m sh -c 'mount --bind {work}/n {work}/n && cd n && "
        "pivot_root . .{work} && echo sprung > {work}{mark}'",
    ),
    _escape("agent: the same root", "chroot / sh -c 'echo sprung > {mark}'"),
    _escape(
        "agent: link to a file outside",
        "ln {mark} h; echo sprung > h",
        prepared=(ran(": > {mark}"),),
    ),
    _escape("agent: file moved outside", "echo sprung > f; mv f {mark}"),
    _escape(
        "agent: mapping of a file outside",
        "{python} -c \"import mmap, os; f = os.open('{mark}', os.O_RDWR | os.O_CREAT); "
        "os.ftruncate(f, 9); m = mmap.mmap(f, 9); m[:6] = b'sprung'\"",
    ),
    _escape("agent: another user", "su -s /bin/sh nobody -c '{trap}'"),
    _escape("agent: orphan of an orphan", "setsid -f sh -c 'setsid -f sh -c \"{trap}\"'"),
]

SCENARIOS = [*FILES, *GIT, *ENVIRONMENT, *NAMES, *PROGRAMS, *SERVERS, *WAYS_OUT]
assert all(each.layer == EXEC for each in SCENARIOS)


def build(theatre: Theatre) -> None:
    """The programs that scenarios use."""
    compiled(theatre, "preload", "preload.so", "-shared", "-fPIC")
    compiled(theatre, "flip", "flip", "-pthread")
    compiled(theatre, "ring", "ring")
    compiled(theatre, "narrow", "narrow")
    compiled(theatre, "exchange", "exchange")
