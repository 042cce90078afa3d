"""Starting and stopping the relay. `hold relay` runs this."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import resource
import signal
import ssl
import sys

import uvloop

from holdfast.adapters.log_lines import log_to_stderr
from holdfast.model.errors import HoldfastError
from holdfast.model.home import home_of
from holdfast.relay import certificate, privileges, program_mounts
from holdfast.relay.cluster import Cluster
from holdfast.relay.options import Options, parse
from holdfast.relay.rendezvous import Relay
from holdfast.relay.server import Server
from holdfast.relay.shared_state import shared

log = logging.getLogger("relay")


async def serve(options: Options) -> None:
    paths = _certificate(options)
    tls = certificate.context_of(*paths) if paths else None
    async with shared(options) as (floors, bus):
        relay = Relay(options.bounds, floors)
        if bus is not None:
            relay.cluster = Cluster(relay, bus)
            await relay.cluster.start()
        await _serve(Server(relay, options), options, tls, paths)


async def _serve(
    server: Server,
    options: Options,
    tls: ssl.SSLContext | None,
    paths: tuple[str, str] | None,
) -> None:
    port = await server.start(tls)
    fingerprint = certificate.fingerprint_of(paths[0]) if paths else ""
    if options.user and (why_not := privileges.switch_user(options.user)):
        log.warning("the relay keeps running as user %d: %s", os.getuid(), why_not)
    ending = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _end, ending)
    loop.add_signal_handler(signal.SIGHUP, _renew, tls, paths)
    _print_address(options, port, fingerprint)
    # What is loaded by now is never freed, so the garbage collector need not look at it.
    gc.collect()
    gc.freeze()
    await ending.wait()
    log.info("draining for %g s: clients are told to use another relay", options.bounds.drain_s)
    await server.stop()


def _end(ending: asyncio.Event) -> None:
    """The first signal drains; a second one stops at once."""
    if ending.is_set():
        os._exit(0)
    ending.set()


def _certificate(options: Options) -> tuple[str, str] | None:
    if options.certificate:
        return options.certificate, options.key
    if options.self_signed:
        names = [name.rpartition(":")[0] for name in options.names]
        directory = f"{home_of(os.environ, os.getuid()).state}/relay"
        return certificate.self_signed(directory, [options.address, *names])
    return None


def _renew(tls: ssl.SSLContext | None, paths: tuple[str, str] | None) -> None:
    """Reload the certificate files for new connections; a bad one changes nothing."""
    if tls is None or paths is None:
        return
    try:
        certificate.context_of(*paths)
        certificate.load(tls, *paths)
        log.info("the certificate was reloaded")
    except HoldfastError as error:
        log.error("keeping the old certificate: %s", error.message)


def _print_address(options: Options, port: int, fingerprint: str) -> None:
    """One line for people, or for the process that started us."""
    address = f"[{options.address}]" if ":" in options.address else options.address
    url = f"{'https' if options.tls else 'http'}://{address}:{port}"
    line = f"{url} sha256:{fingerprint}" if fingerprint else url
    if options.ready_fd is not None:
        with open(options.ready_fd, "w", encoding="ascii") as ready:
            ready.write(f"ready {line}\n")
    else:
        print(f"the relay is at {line}", flush=True)


def _open_program(options: Options) -> None:
    """Before anything has started a thread."""
    files = (options.registry, options.certificate, options.key)
    used = [os.path.dirname(each) for each in files if each]
    if why_not := program_mounts.open_to_others([home_of(os.environ, 0).state, *used]):
        log.warning("the program files stay as they are: %s", why_not)


def _more_descriptors() -> None:
    """Raise the limit of descriptors: each connection needs one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main() -> int:
    log_to_stderr()
    try:
        options = parse(sys.argv[1:])
        _more_descriptors()
        if options.user and os.getuid() == 0:
            _open_program(options)
        uvloop.run(serve(options))
    except HoldfastError as error:
        hint = f"; {error.hint}" if error.hint else ""
        print(f"hold relay: {error.message} ({error.code}){hint}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
