"""A relay whose certificate is not what it should be is not spoken to; it is said why and what can
be done, and the host goes on trying until it is right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.certificates import Authority
from faults.hosting import FaultHost
from faults.reached import Guests
from holdfast.model.errors import RelayUnreachable
from holdfast.model.info import RelayState
from holdfast.sdk import identity
from holdfast.sdk.client import Host
from holdfast.sdk.reach import host_relays
from holdfast.sdk.reach.machines import Machine
from process.relaying import RelayProcess
from process.waiting import until


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    made = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(made.file))
    return made


@pytest.fixture
def trusting(authority: Authority) -> Iterator[FaultHost]:
    """A host that trusts it."""
    with FaultHost({"SSL_CERT_FILE": str(authority.file)}) as host:
        yield host.up()


@pytest.mark.requirement("R1", "R4")
@pytest.mark.parametrize(
    ("kind", "pin", "said", "remedy"),
    [
        ("self-signed", "", "self-signed certificate", "give the fingerprint"),
        ("self-signed", "0" * 64, "fingerprint", "somebody may intercept the connection"),
        ("expired", "", "certificate has expired", "has to renew it"),
        ("not yet valid", "", "certificate is not yet valid", "compare the clocks"),
        ("another's", "", "IP address mismatch", "use a name that the certificate contains"),
    ],
)
def test_a_certificate_that_is_not_right_is_told_of_and_tried_until_it_is(
    authority: Authority,
    trusting: FaultHost,
    guests: Guests,
    kind: str,
    pin: str,
    said: str,
    remedy: str,
) -> None:
    with RelayProcess(*authority.words(kind)) as relay:
        port, address = relay.port, f"{relay.url}#sha256:{pin}" if pin else relay.url
        done = trusting.hold("host", "--relay", address)
        assert done.returncode == 1 and said in done.stdout, done
        identity.keep(identity.make("device"))
        machine = Machine("box", "00" * 32, (address,), "device")
        with pytest.raises(RelayUnreachable) as caught:
            Host(machine)
        assert said in caught.value.message
        assert remedy in caught.value.hint
        assert "goes on trying" in done.stderr
    if pin:
        return  # no certificate but one has that fingerprint
    good = authority.words("good")
    with RelayProcess(*good, listen=f"127.0.0.1:{port}"), trusting.client() as client:
        found = until("it is reached", lambda: _reached(client), 40)
    assert [each.address for each in found] == [address]
    assert "Traceback" not in trusting.log()


def _reached(client: Host) -> tuple[RelayState, ...]:
    return tuple(each for each in host_relays.relays(client) if each.reached)
