"""`market: ssh`: the same story on the user's own server, with no market and no chain."""
from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.hostkey import fingerprint
from orchestrator.lab import node as lab_node
from orchestrator.lab import sandbox
from tests.scenario.data import parcels
from tests.scenario.lab import FAST, HANGING, Lab, Laptop, files_of

pytestmark = pytest.mark.journey


@dataclass
class Server:
    """A machine of the user's: a real sshd, an unprivileged account, the user's own key in authorized_keys."""

    node: lab_node.NodeProcess
    key: Path
    laptop: Laptop                       # without a lab: nothing in its state but what it makes itself

    def page(self, knobs: Mapping[str, Any] = FAST, **ssh: Any) -> Path:
        where = {"host": self.node.host, "port": self.node.port, "user": self.node.user, "identity": str(self.key)}
        return self.laptop.write_run(parcels(500), knobs=knobs, market="ssh", budget=None, hours=None, ssh={**where, **ssh})

    @property
    def known(self) -> Path:
        return self.laptop.home / ".ssh" / "known_hosts"

    @property
    def host_line(self) -> str:
        return f"[{self.node.host}]:{self.node.port} {self.node.host_keys[0]}\n"


@pytest.fixture
def server(lab: Lab, tmp_path: Path) -> Iterator[Server]:
    folder = tmp_path / "server"
    node = lab_node.start(lab_node.NodeSpec(folder, environment=_packages(lab), gpu=None))
    key = tmp_path / "id_own"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "me@home", "-f", str(key)], check=True)
    Path(node.authorized_keys).write_text(key.with_suffix(".pub").read_text())
    laptop = Laptop(tmp_path / "laptop", {"hub": lab.facts["hub_url"]})
    (laptop.home / ".ssh").mkdir(mode=0o700)
    yield Server(node, key, laptop)
    laptop.leave()
    lab_node.stop(folder)
    sandbox.remove(folder)


def _packages(lab: Lab) -> dict[str, str]:
    """Where the lab's own node finds packages: as its sessions are told."""
    from orchestrator.lab.up import _packages as packages
    return packages(lab.folder / "node")


def test_by_fingerprint_the_whole_story(lab: Lab, server: Server) -> None:
    sent, blocks = lab.sent, lab.money.rpc("eth_blockNumber")
    page = server.page(fingerprint=fingerprint(server.node.host_keys[0]))
    result = server.laptop.sealtune("run", page, "--yes", "--json").tree
    assert (result["verdict"], result["owed"], result["money"], result["error"]) == ("verified", [], None, None)
    assert (Path(result["adapter"]) / "adapter_model.safetensors").stat().st_size > 0
    report = json.loads(Path(result["report"]).read_text())["predicate"]
    assert server.node.host not in Path(result["report"]).read_text(), "no address in what others may read"
    assert report["run"]["dataset"]["rows"] == 500
    assert report["node"]["host_keys_trusted_by"] == "fingerprint"
    assert report["result"] == "complete"
    kept = files_of(Path(server.node.home))
    assert kept and all(name.startswith(".sealtune/public/") for name in kept), "only what is public stays"
    assert [word.rsplit(" ", 1)[0] for word in report["wipe"]["answer"]["kept"]] == ["base model", "environment"]
    assert all(":" in word for word in report["wipe"]["answer"]["kept"]), "each by its digest"
    assert Path(server.node.authorized_keys).read_text() == server.key.with_suffix(".pub").read_text()
    assert not server.known.exists()
    assert server.laptop.sealtune("audit", result["run"], "--json").tree["verdict"] == "verified"
    assert (lab.sent, lab.money.rpc("eth_blockNumber")) == (sent, blocks), "no chain was involved"
    assert not (server.laptop.state / "lab").exists()


def test_by_known_hosts_in_plain_words(server: Server) -> None:
    """A server of one's own is no market; with `keep: false` it is as it was before."""
    server.known.write_text(server.host_line)
    done = server.laptop.sealtune("run", server.page(keep=False), "--yes")
    assert f"server      {server.node.host}, your own server, no GPU: training on the CPU" in done.err
    assert "\n  no GPU: training on the CPU\n" in done.err
    for word in ("market", "deposit", "renting", "offer"):
        assert word not in done.err + done.out
    assert "verdict  verified" in done.out
    assert "nothing was trained, the figures are played; no GPU)" in done.out
    assert "money" not in done.out
    assert server.known.read_text() == server.host_line
    assert files_of(Path(server.node.home)) == frozenset(), "the user's machine is as it was before"


def test_an_unknown_key_is_not_accepted_with_yes(server: Server) -> None:
    told = server.laptop.sealtune("run", server.page(), "--yes", code=1).err
    assert "an unknown host key is not accepted with --yes" in told
    assert "hint: add `fingerprint:`" in told
    untouched(server)


def test_another_fingerprint_is_refused(server: Server) -> None:
    other = "SHA256:" + "A" * 43
    told = server.laptop.sealtune("run", server.page(fingerprint=other), "--yes", code=1).err
    assert f"shows host key {fingerprint(server.node.host_keys[0])}, the run file says {other}" in told
    untouched(server)


def test_another_key_in_known_hosts_is_refused(server: Server, lab: Lab) -> None:
    server.known.write_text(f"[{server.node.host}]:{server.node.port} {lab.node.host_keys[0]}\n")
    result = server.laptop.sealtune("run", server.page(), "--yes", "--json", code=1).tree
    assert "host key changed" in result["error"]["message"]
    assert result["owed"] == [], "nothing reached the machine, so nothing is owed there"
    untouched(server)


def test_nobody_answers(server: Server) -> None:
    port = lab_node.free_port()
    told = server.laptop.sealtune("run", server.page(port=port, fingerprint="SHA256:" + "A" * 43), "--yes", code=1).err
    assert f"{server.node.host}:{port} does not answer" in told


def test_who_is_not_let_in_learns_it_before_anything_is_begun(server: Server, tmp_path: Path) -> None:
    other = tmp_path / "id_other"
    subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-N", "", "-f", str(other)], check=True)
    server.known.write_text(server.host_line)
    told = server.laptop.sealtune("run", server.page(identity=str(other)), "--yes", code=1).err
    assert f"{server.node.host} does not let {server.node.user} in; offered: {other} (SHA256:" in told
    assert told.count("does not let") == 1, "there is only one server: it is asked once"
    assert "hint: `user:` and `identity:`" in told
    assert server.laptop.sealtune("rentals", "--json").tree["rentals"] == []
    untouched(server)


@pytest.mark.full
def test_a_server_that_was_away_is_wiped_later_and_the_evidence_is_sealed(lab: Lab, server: Server) -> None:
    """It went down in training. What is on it stays owed, with exit 3; once it is back, `sealtune end RUN` discharges it."""
    page, folder = server.page(fingerprint=fingerprint(server.node.host_keys[0]), knobs=HANGING), Path(server.node.folder)
    going = server.laptop.begin("run", page, "--yes", "--on-interrupt", "stop")
    run = server.laptop.in_training(going)
    lab_node.stop(folder)
    going.interrupt()
    told = going.ended(3).err
    assert "data of lease-1" in told and "keeper of lease-1" in told
    assert "still open: " in server.laptop.sealtune("end", run, "--yes", code=3).err
    server.node = lab_node.start(lab_node.NodeSpec(folder, server.node.port, _packages(lab), gpu=None))
    server.laptop.sealtune("end", run, "--yes")
    audited = server.laptop.sealtune("audit", run, "--json").tree
    (wiped,) = [c for c in audited["checks"] if c["number"] == 12]
    assert "after the report was signed, the closing record holds its evidence" in wiped["why"]
    assert audited["verdict"] == "verified"
    assert all(name.startswith(".sealtune/public/") for name in files_of(Path(server.node.home)))


def test_a_missing_identity_is_named(server: Server) -> None:
    told = server.laptop.sealtune("run", server.page(identity="nowhere/id"), "--yes", code=2).err
    assert "nowhere/id: no such file" in told


def untouched(server: Server) -> None:
    assert files_of(Path(server.node.home)) == frozenset()
    assert not (server.laptop.state / "known_hosts").exists()
