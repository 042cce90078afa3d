"""Starting and stopping the gateway. `hold sshd` runs this."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys

from holdfast.model.errors import HoldfastError, InvalidArgument, Unsupported
from holdfast.model.limits import SSH_BEAT_S, SSH_BEATS_MISSED, SSH_HANDSHAKE_S, SSH_WINDOW_BYTES
from holdfast.ssh import authorized

DEFAULT_LISTEN = "127.0.0.1:7422"


async def serve(address: str, port: int) -> None:
    import asyncssh

    from holdfast.ssh import host_key
    from holdfast.ssh.gateway import Gateway
    from holdfast.ssh.login import Login

    key = host_key.load_or_make()
    gateway = Gateway()
    try:
        listener = await asyncssh.listen(
            address,
            port,
            server_factory=lambda: Login(gateway),
            server_host_keys=[key],
            server_version="holdfast",
            # Only public keys can log in, and only sessions can be opened.
            public_key_auth=True,
            password_auth=False,
            kbdint_auth=False,
            host_based_auth=False,
            gss_kex=False,
            gss_auth=False,
            agent_forwarding=False,
            x11_forwarding=False,
            allow_scp=False,
            compression_algs=None,
            # Bytes pass unchanged: asyncssh must not add a line editor.
            encoding=None,
            line_editor=False,
            login_timeout=SSH_HANDSHAKE_S,
            keepalive_interval=SSH_BEAT_S,
            keepalive_count_max=SSH_BEATS_MISSED,
            window=SSH_WINDOW_BYTES,
        )
    except OSError as error:
        raise InvalidArgument(
            f"cannot listen at {_shown(address, port)}: {os.strerror(error.errno or 0)}",
            hint="--listen ADDRESS:PORT; port 0 takes a free one",
        ) from error
    _tell(_shown(address, listener.get_port()), key.get_fingerprint())
    rechecking = asyncio.create_task(gateway.recheck())
    await _until_signalled()
    rechecking.cancel()
    listener.close()
    await gateway.close()


async def _until_signalled() -> None:
    ending = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, _end, ending)
    await ending.wait()


def _end(ending: asyncio.Event) -> None:
    """The first signal asks children to detach; a second one does not wait for them."""
    if ending.is_set():
        os._exit(0)
    ending.set()


def _tell(place: str, fingerprint: str) -> None:
    print(f"the ssh gateway is at {place}, host key {fingerprint}")
    print("end-to-end encryption ends at it: it can read and type what passes through")
    if not authorized.load():
        print("no keys are authorized yet: `hold sshd authorize KEYFILE --as ACTOR`")
    sys.stdout.flush()


def _shown(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _place(listen: str) -> tuple[str, int]:
    address, colon, port = listen.rpartition(":")
    address = address.removeprefix("[").removesuffix("]")
    if not (colon and address and port.isdecimal() and len(port) < 6 and int(port) < 65536):
        raise InvalidArgument(f"not an address and port: {listen[:80]!r}", hint=DEFAULT_LISTEN)
    return address, int(port)


def main() -> int:
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(name)s: %(message)s", stream=sys.stderr
    )
    logging.getLogger("asyncssh").setLevel(logging.ERROR)
    parser = argparse.ArgumentParser(prog="python -m holdfast.ssh", allow_abbrev=False)
    parser.add_argument("--listen", default=DEFAULT_LISTEN)
    try:
        asyncio.run(serve(*_place(parser.parse_args().listen)))
    except ImportError as error:
        if error.name != "asyncssh":
            raise
        return _say(
            Unsupported("the ssh gateway needs asyncssh", hint="pip install 'holdfast[ssh]'")
        )
    except HoldfastError as error:
        return _say(error)
    return 0


def _say(error: HoldfastError) -> int:
    hint = f"; {error.hint}" if error.hint else ""
    print(f"hold sshd: {error.message} ({error.code}){hint}", file=sys.stderr)
    return error.exit_status


if __name__ == "__main__":
    sys.exit(main())
