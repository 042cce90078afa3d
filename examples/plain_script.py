"""The same API without async, for scripts."""

from holdfast import blocking

with blocking.connect() as hold:
    session = hold.run(["bash", "--norc"], name="script")
    session.wait_for(state="prompt", timeout=30)
    for command in ("cd /tmp", "pwd"):
        result = session.submit(command)
        print(f"{command}: {result.status} {result.output.strip()}".strip())
    print(f"ended: {session.end()}")
