"""One WebSocket to a relay: messages in by callback, messages out at once, one notice of its end.

Written on picows, whose callbacks cost a fraction of a task per message. TLS is checked as usual or
against a fingerprint. The proxy comes from `https_proxy`, `http_proxy` and `all_proxy`, unless
`no_proxy` names the relay or the relay is on this machine; it is used by CONNECT.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import logging
import ssl
import urllib.request
from collections.abc import Callable

from picows import WSCloseCode, WSError, WSFrame, WSListener, WSMsgType, WSTransport, ws_connect

from holdfast.dial.address import RelayAddress
from holdfast.model.errors import RelayUnreachable
from holdfast.model.limits import RELAY_FRAME_MAX_BYTES, RELAY_HEARTBEAT_S

logging.getLogger("picows").setLevel(logging.WARNING)  # the users of a connection log it

_CONNECT_S = 10.0
_HANG_UP_S = 1.0
_ROOM_FOR_FRAMING = 4096
# X509_V_ERR_… of OpenSSL: stable numbers that `ssl` has no names for.
_NOT_YET_VALID, _EXPIRED = 9, 10
_NAME_MISMATCH = (62, 64)  # a host's name, an IP address


class WebSocket(WSListener):
    """An open connection. After `begin`, `on_message` gets each message; `lost` completes, with a
    reason, when it ends."""

    def __init__(
        self, on_message: Callable[[bytes], None], on_room: Callable[[bool], None]
    ) -> None:
        super().__init__()
        self._on_message, self._on_room = on_message, on_room
        self._transport: WSTransport | None = None
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._early: list[bytes] | None = []  # messages that arrived before `begin`
        self.has_room = True  # whether sent messages leave at once and do not pile up

    def begin(self) -> None:
        early, self._early = self._early or [], None
        for message in early:
            self._on_message(message)

    def send(self, message: bytes) -> None:
        if self._transport is not None and not self.lost.done():
            self._transport.send(WSMsgType.BINARY, message)

    def pause_reading(self, paused: bool) -> None:
        """Stop or resume reading."""
        if self._transport is None or self.lost.done():
            return
        carrier = self._transport.underlying_transport
        if paused:
            carrier.pause_reading()
        else:
            carrier.resume_reading()

    def close(self) -> None:
        if self._transport is not None and not self.lost.done():
            self._transport.send_close(WSCloseCode.OK)
            self._transport.disconnect()

    # -- called by picows -------------------------------------------------------------------------

    def on_ws_connected(self, transport: WSTransport) -> None:
        self._transport = transport

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        if frame.msg_type == WSMsgType.BINARY:
            message = frame.get_payload_as_bytes()
            if self._early is not None:
                self._early.append(message)
            else:
                self._on_message(message)
        elif frame.msg_type == WSMsgType.CLOSE:
            self._lost(f"the relay closed the connection ({frame.get_close_code()})")
            transport.disconnect()

    def on_ws_disconnected(self, transport: WSTransport) -> None:
        self._lost("the connection to the relay was lost")

    def pause_writing(self) -> None:
        self.has_room = False
        self._on_room(False)

    def resume_writing(self) -> None:
        self.has_room = True
        self._on_room(True)

    def _lost(self, why: str) -> None:
        if not self.lost.done():
            self.lost.set_result(why)


async def connect(
    address: RelayAddress,
    path: str,
    on_message: Callable[[bytes], None],
    on_room: Callable[[bool], None] = lambda _: None,
) -> WebSocket:
    """Connect to the relay, or raise RelayUnreachable with the reason."""
    tls = _tls(address) if address.scheme == "https" else None
    try:
        async with asyncio.timeout(_CONNECT_S):
            transport, made = await ws_connect(
                lambda: WebSocket(on_message, on_room),
                address.websocket(path),
                ssl_context=tls,
                proxy=_proxy(address),
                max_frame_size=RELAY_FRAME_MAX_BYTES + _ROOM_FOR_FRAMING,
                max_redirects=0,
                enable_auto_ping=True,
                auto_ping_idle_timeout=RELAY_HEARTBEAT_S,
                auto_ping_reply_timeout=RELAY_HEARTBEAT_S,
                use_aiofastnet=False,
            )
        if not isinstance(made, WebSocket):  # lost during the handshake
            raise RelayUnreachable(f"the relay at {address.url} hung up")
        if address.pin and not _is_pinned(transport, address.pin):
            await _hang_up(transport)
            raise RelayUnreachable(
                f"the certificate of {address.url} does not have this fingerprint",
                hint="somebody may intercept the connection, or the relay has a new certificate",
            )
    except ssl.SSLCertVerificationError as error:
        raise RelayUnreachable(
            f"the certificate of {address.url} is not valid: {error.verify_message}",
            hint=_remedy(error.verify_code, address),
        ) from error
    except (OSError, WSError, TimeoutError, ValueError) as error:
        why = str(error) or type(error).__name__
        raise RelayUnreachable(f"no relay answers at {address.url}: {why[:200]}") from error
    return made


def _remedy(code: int, address: RelayAddress) -> str:
    """What to do about a refused certificate, by OpenSSL's error number."""
    if code == _EXPIRED:
        return "the operator of the relay has to renew it"
    if code == _NOT_YET_VALID:
        return "it is not valid yet; compare the clocks of the two machines"
    if code in _NAME_MISMATCH:
        return f"use a name that the certificate contains; {address.host} is not one"
    return "for a self-signed one give the fingerprint: URL#sha256:…, as `hold relay` prints it"


def _tls(address: RelayAddress) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if address.pin:  # compared after the handshake, before anything is sent
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _is_pinned(transport: WSTransport, pin: str) -> bool:
    secured = transport.underlying_transport.get_extra_info("ssl_object")
    shown = (secured.getpeercert(binary_form=True) if secured is not None else None) or b""
    return bool(shown) and hmac.compare_digest(hashlib.sha256(shown).hexdigest(), pin)


async def _hang_up(transport: WSTransport) -> None:
    """Wait until it is closed: the caller may end the program right after the error."""
    transport.disconnect()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_HANG_UP_S):
            await transport.wait_disconnected()
    await asyncio.sleep(0)  # for what picows does in parallel


def _proxy(address: RelayAddress) -> str | None:
    if address.loopback or urllib.request.proxy_bypass(address.name):
        return None
    chosen = urllib.request.getproxies()
    found = chosen.get(address.scheme) or chosen.get("all")
    return found or None
