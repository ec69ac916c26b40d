"""The lab as a whole: `up`, `down`, `running`. Four services on loopback that stand for the world outside.

    chain       a chain with Circle's token and the escrow          lab/chain.py, lab/deploy.py
    node        an ssh server with a sandbox home                    lab/node.py
    hub         a folder with a tiny base model                      lab/hub.py
    provider    the agent that offers the node for play money        provider/

`up` is idempotent and `down` leaves nothing running; what the chain knows and the node's public parts stay on disk.
"""
from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from .. import __version__
from ..chain import contracts
from ..domain.document import Json, canonical, decode, encode, sha256
from ..domain.escrow import EscrowFacts
from ..wiring import Place
from . import chain, deploy, model, node, processes, sandbox
from .deploy import LabMoney
from .node import NodeProcess, NodeSpec

HUB, PROVIDER = "orchestrator.lab.hub", "orchestrator.provider"
MODEL = "sealtune-lab/tiny-llama"
PRICE, FEE_BPS, INSPECTION_SECONDS = "0.45 USDC", 100, 1800
KEEP = ("environment", "base model")
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Lab:
    """A lab that runs. Pids are those of hub and provider; chain and node know their own."""

    folder: str
    chain_url: str
    chain_kind: str
    provider_url: str
    hub_url: str
    node_host: str
    node_port: int
    node_user: str
    node_kind: str
    node_home: str
    money: LabMoney
    hub_pid: int
    provider_pid: int
    release: str = ""                    # of the tool that started it, with the escrow that it deploys


def place(lab: Lab) -> Place:
    """What the wiring needs to rent here."""
    money = lab.money
    facts = EscrowFacts(money.chain_id, money.escrow, money.token)
    return Place("lab", lab.hub_url, (MODEL,), lab.provider_url, (lab.chain_url,), facts, key=Path(money.renter_key),
                 keep=KEEP)


def exists(state: Path) -> bool:
    """There was a lab here once; its chain may still know rentals of ours."""
    return (state / "lab" / "lab.json").is_file()


def running(state: Path) -> Lab | None:
    """The lab, if every part of it lives."""
    try:
        lab = decode(Lab, json.loads((state / "lab" / "lab.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None
    folder = Path(lab.folder)
    alive = (chain.running(folder / "chain") and node.running(folder / "node")
             and processes.lives(lab.hub_pid, HUB) and processes.lives(lab.provider_pid, PROVIDER))
    return lab if alive else None


def up(state: Path, say: Say) -> Lab:
    """Start what does not run. Refused with a hint when a part cannot be had on this machine."""
    with _alone(state):
        lab = running(state)
        if lab and lab.release == _release():
            return lab
        if lab:
            say("the lab that runs here is of another release: it is started anew, and what was rented in it is over")
        _stop(state)                     # a part that survived belongs to a lab that is no more
        folder = state / "lab"
        try:
            lab = _start(folder, _ports(folder), say)
        except BaseException:            # why: half a lab is of no use, and nobody would know of it
            _stop(state)
            raise
        (folder / "lab.json").write_bytes(canonical(encode(lab)[0]))
        return lab


def down(state: Path) -> bool:
    """Stop everything. False when nothing ran."""
    with _alone(state):
        return _stop(state)


def describe(lab: Lab) -> str:
    return "\n".join((f"chain     {lab.chain_url} ({lab.chain_kind}, play money, id {lab.money.chain_id})",
                      f"provider  {lab.provider_url}", f"hub       {lab.hub_url}",
                      f"node      {lab.node_host}:{lab.node_port} ({lab.node_kind}, simulated GPU)"))


def public(lab: Lab) -> dict[str, Json]:
    """Without pids, for --json."""
    return {name: value for name, value in asdict(lab).items() if not name.endswith("_pid")}


def _release() -> str:
    """What a lab must have been started by to be of use: its parts talk to each other in our words."""
    return f"{__version__} {sha256(contracts.load('RentalEscrow').bytecode)}"


# ---- parts -------------------------------------------------------------------------------------------------


def _start(folder: Path, ports: Mapping[str, int], say: Say) -> Lab:
    say("starting the lab: chain, node, model hub, provider")
    model.build(folder / "hub" / MODEL)
    ledger = chain.start(folder / "chain", ports["chain"])
    if ledger.kind != "anvil":
        say("no anvil could be had: the lab's chain is a small one over py-evm")
    money = deploy.deploy(ledger.url, folder / "chain")
    machine = node.start(NodeSpec(folder / "node", ports["node"], _packages(folder / "node")))
    if machine.kind != "sshd":
        say("no sshd was found: the node is a small asyncssh server (the real one: sudo apt install openssh-server)")
    hub = _serve(HUB, [str(folder / "hub"), str(ports["hub"])], folder / "hub.log", f"http://127.0.0.1:{ports['hub']}/")
    config = folder / "provider.json"
    config.write_bytes(canonical(_provider(folder, ports["provider"], ledger.url, money, machine)))
    url = f"http://127.0.0.1:{ports['provider']}"
    provider = _serve(PROVIDER, [str(config)], folder / "provider.log", f"{url}/v1/info")
    return Lab(str(folder), ledger.url, ledger.kind, url, f"http://127.0.0.1:{ports['hub']}", machine.host, machine.port,
               machine.user, machine.kind, machine.home, money, hub, provider, _release())


def _serve(module: str, arguments: list[str], log: Path, url: str) -> int:
    pid = processes.spawn(module, arguments, log)
    _pid_file(log).write_text(str(pid))
    processes.answers(url, pid, module, log)
    return pid


def _pid_file(log: Path) -> Path:
    return log.with_suffix(".pid")


def _pid(log: Path) -> int:
    """0 where none was started."""
    try:
        return int(_pid_file(log).read_text())
    except (OSError, ValueError):
        return 0


def _provider(folder: Path, port: int, rpc: str, money: LabMoney, machine: NodeProcess) -> Json:
    from ..chain.wallet import load_key
    from ..provider.config import OfferConfig, ProviderConfig

    fees = load_key(folder / "chain" / "keys" / "deployer.key").address
    offer = OfferConfig("lab-1", "Simulated RTX 4090", 1, 24_564, PRICE, ram_mib=_memory_mib(), simulated=True,
                        disk_gib=shutil.disk_usage(machine.home).free * 3 // 4 // 1024 ** 3,   # others use it too
                        fee_bps=FEE_BPS, fee_recipient=fees, inspection_seconds=INSPECTION_SECONDS)
    config = ProviderConfig(
        "127.0.0.1", port, rpc, money.chain_id, money.escrow, money.token, money.provider_key,
        str(folder / "provider"), machine.authorized_keys, machine.host, machine.port, machine.user, machine.host_keys,
        offer, "lab", 1,
        lock_out=(sys.executable, "-m", "orchestrator.lab.node", "lock-out", str(folder / "node")))
    return encode(config)[0]


def _memory_mib() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1024 ** 2


def _packages(folder: Path) -> dict[str, str]:
    """Where the node's installer finds packages. A wheel folder that its unprivileged user cannot reach is copied to
    where it can."""
    passed = node.passed_on(os.environ)
    if os.geteuid() != 0:                # node and laptop are one user: its scan must leave our own journal out, and says so
        passed["SEALTUNE_LAB_LAPTOP"] = str(folder.parents[1])
    wheels = os.environ.get("SEALTUNE_LAB_WHEELS", "")
    if not wheels:
        return passed
    source = Path(wheels).resolve()
    if os.geteuid() == 0 and not sandbox.reachable(source / "any"):
        source = _copied(source, sandbox.open_base(folder) / "wheels")
    return {**passed, "PIP_FIND_LINKS": str(source), "PIP_NO_INDEX": "1", "UV_OFFLINE": "1", "UV_NO_INDEX": "1"}


def _copied(source: Path, target: Path) -> Path:
    target.mkdir(mode=0o755, exist_ok=True)
    for wheel in source.glob("*.whl"):
        if not (target / wheel.name).exists():
            shutil.copyfile(wheel, target / wheel.name)
            (target / wheel.name).chmod(0o644)
    return target


def _ports(folder: Path) -> dict[str, int]:
    """Chosen once, so that a run of yesterday finds its node where it was."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / "ports.json"
    if not file.is_file():
        file.write_text(json.dumps({name: node.free_port() for name in ("chain", "node", "hub", "provider")}))
    return {name: int(port) for name, port in json.loads(file.read_text()).items()}


def _stop(state: Path) -> bool:
    folder, stopped = state / "lab", False
    for module, log in ((PROVIDER, folder / "provider.log"), (HUB, folder / "hub.log")):
        if pid := _pid(log):
            stopped |= processes.lives(pid, module)
            processes.end(pid, module)
            _pid_file(log).unlink()
    stopped |= node.running(folder / "node") is not None
    node.stop(folder / "node")
    if ledger := chain.running(folder / "chain"):
        chain.stop(ledger)
        stopped = True
    return stopped


@contextmanager
def _alone(state: Path) -> Iterator[None]:
    """One process at a time starts or stops the lab."""
    (state / "lab").mkdir(mode=0o700, parents=True, exist_ok=True)
    with (state / "lab" / "up.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
