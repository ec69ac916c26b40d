"""One lab for all journeys, and laptops that share it: state folders of their own, with the command line as a person
would type it. Nothing of the product is replaced; what a provider does wrong is written in its configuration.
"""
from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from orchestrator.chain import wallet
from orchestrator.cli import main
from orchestrator.domain.escrow import EscrowFacts, Rental
from orchestrator.domain.event import Event
from orchestrator.domain.names import RunId
from orchestrator.journal.journals import Journals
from orchestrator.lab import anvil, chain, processes, reaper, sandbox
from orchestrator.lab import node as lab_node
from orchestrator.lab.deploy import GAS_WEI
from orchestrator.wiring import SystemClock
from tests.fakes import labchain
from tests.fakes.outbox import MemoryOutbox

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 420                           # seconds for one command on a machine that has other things to do
MODEL = "sealtune-lab/tiny-llama"
FAST = {"rehearsal_steps": 12, "rehearsal_step_seconds": 0.05}
SLOW = {"rehearsal_steps": 24, "rehearsal_step_seconds": 0.5}
HANGING = {"rehearsal_hang": 1}


def eventually(met: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """What `met` says as soon as it is true; AssertionError with `what` when that takes too long."""
    deadline = time.monotonic() + seconds
    while not (found := met()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.1)
    return found


@dataclass(frozen=True)
class Done:
    """A command that ended."""

    code: int
    out: str
    err: str

    @property
    def tree(self) -> Any:
        return json.loads(self.out)


class Going:
    """A command that runs, its output in files."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self.process, self._folder = process, folder

    def ended(self, code: int, seconds: float = PATIENCE) -> Done:
        try:
            got = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {seconds} s: {self.said('err')}") from None
        done = Done(got, self.said("out"), self.said("err"))
        assert got == code, f"exit code {got}, not {code}\n{done.out}\n{done.err}"
        return done

    def said(self, where: str = "err") -> str:
        return (self._folder / where).read_text(errors="replace")

    def interrupt(self) -> None:
        """Ctrl-C: the whole group hears it."""
        os.killpg(self.process.pid, signal.SIGINT)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait(20)


@dataclass
class Laptop:
    """A state folder and a home. `folder/state/lab` leads to the lab, if there is one."""

    folder: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    going: list[Going] = field(default_factory=list)

    def __post_init__(self) -> None:
        for part in (self.folder, self.state, self.home, self.folder / "work"):
            part.mkdir(mode=0o700, exist_ok=True)
        self.set(**self.settings)

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def runs(self) -> list[str]:
        return sorted(p.name for p in (self.state / "runs").glob("*") if not p.name.startswith("found-"))

    def set(self, **settings: Any) -> None:
        """`settings.yaml`; JSON is YAML."""
        (self.state / "settings.yaml").write_text(json.dumps(settings))

    def sealtune(self, *words: str | Path, code: int = 0) -> Done:
        done = subprocess.run(command(*words), capture_output=True, text=True, env=self._environment(), cwd=ROOT,
                              stdin=subprocess.DEVNULL, timeout=PATIENCE)
        assert done.returncode == code, f"exit code {done.returncode}, not {code}\n{done.stdout}\n{done.stderr}"
        return Done(done.returncode, done.stdout, done.stderr)

    def here(self, *words: str | Path, code: int = 0) -> Done:
        """A command in this process, which has imported everything already."""
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            for name, value in self._environment().items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["sealtune", *map(str, words)])
            patch.setattr(sys, "stdin", io.StringIO())
            got = main()
        assert got == code, f"exit code {got}, not {code}\n{out.getvalue()}\n{err.getvalue()}"
        return Done(got, out.getvalue(), err.getvalue())

    def begin(self, *words: str | Path) -> Going:
        """Started in a process group of its own, as a terminal would."""
        folder = self.folder / f"command-{len(self.going)}"
        folder.mkdir()
        with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
            process = subprocess.Popen(command(*words), stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=ROOT,
                                       env=self._environment(), start_new_session=True)
        self.going.append(Going(process, folder))
        return self.going[-1]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "SEALTUNE_HOME": str(self.state), "HOME": str(self.home), "SEALTUNE_ANVIL": which_anvil()}

    # ---- what stands on its disk ---------------------------------------------------------------------------

    def write_run(self, rows: Sequence[Any], name: str = "own", knobs: Mapping[str, Any] = FAST, **fields: Any) -> Path:
        """A dataset of these rows and a run file for it, in the work folder."""
        work = self.folder / "work"
        (work / f"{name}.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        page = {"model": MODEL, "dataset": f"{name}.jsonl", "method": "lora", "engine": "rehearsal", "market": "lab",
                "hours": 1, "budget": "1.00 USDC", **fields,
                "training": {"lora_r": 8, "target_modules": "all-linear", **knobs}}
        return self.write_page(f"{name}.yaml", {k: v for k, v in page.items() if v is not None})

    def write_page(self, name: str, page: Any) -> Path:
        path = self.folder / "work" / name
        path.write_text(page if isinstance(page, str) else json.dumps(page, indent=1))
        return path

    def run_name(self, going: Going) -> str:
        """Of the one run that `going` began here."""
        eventually(lambda: self.runs or going.process.poll() is not None, "the run has a name")
        assert len(self.runs) == 1, going.said()
        return self.runs[0]

    def in_training(self, going: Going, run: str = "", steps: int = 0) -> str:
        """Waits until the run's job trains, and has made so many steps; the run's name."""
        run = run or self.run_name(going)

        def trains() -> bool:
            assert going.process.poll() is None, f"ended with {going.process.poll()}: {going.said()}"
            text = "".join(p.read_text() for p in (self.state / "runs" / run).glob("lease-*/records.jsonl"))
            return '"phase":"training"' in text and text.count('"kind":"step"') >= steps

        eventually(trains, "the job trains")
        return run

    def rows(self, run: str) -> list[Event]:
        """What its journal holds; nothing yet in a run's first moments."""
        book = Journals(self.state, SystemClock())
        try:
            return list(book.read(RunId(run))) if run in book.runs() else []
        finally:
            book.close()

    def secrets(self, run: str) -> dict[str, bytes]:
        """The run's private keys and its canary, by file name, as long as they exist."""
        return {p.name: p.read_bytes() for p in (self.state / "runs" / run / "keys").glob("*") if p.is_file()}

    def leave(self) -> None:
        """End what still runs here, and give back what it held."""
        for one in self.going:
            if one.process.poll() is None:
                one.kill()


@dataclass(frozen=True)
class Finished:
    """A run that ended well, and what stood before it and after it."""

    laptop: Laptop
    result: Mapping[str, Any]
    usdc_before: int
    usdc_after: int
    files_before: frozenset[str]
    files_after: frozenset[str]
    let_in_after: str

    @property
    def run(self) -> str:
        return str(self.result["run"])

    @property
    def home(self) -> Path:
        return self.laptop.state / "runs" / self.run


def files_of(folder: Path) -> frozenset[str]:
    """Every file below, as a path from there."""
    return frozenset(str(Path(where, name).relative_to(folder)) for where, _, names in os.walk(folder) for name in names)


@cache
def which_anvil() -> str:
    """Fetched once and kept between runs of the tests; "none": the lab's chain is the small one."""
    return str(anvil.find(labchain.TOOLS) or "none")


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "orchestrator", *map(str, words)]


@dataclass(frozen=True)
class Lab:
    """The lab of the session, seen from outside: what the chain, the disk and the process table say."""

    owner: Laptop
    money: labchain.Lab
    facts: Mapping[str, Any]

    @property
    def folder(self) -> Path:
        return Path(self.facts["folder"])

    @property
    def sandbox(self) -> Path:
        return Path(self.facts["node_home"])

    @property
    def node(self) -> lab_node.NodeProcess:
        node = lab_node.running(self.folder / "node")
        assert node
        return node

    def laptop(self, folder: Path, **settings: Any) -> Laptop:
        found = Laptop(folder, settings)
        (found.state / "lab").symlink_to(self.owner.state / "lab")
        return found

    # ---- the chain -----------------------------------------------------------------------------------------

    @property
    def usdc(self) -> int:
        """What the renter owns, in base units."""
        return self.money.usdc(self.money.renter.address)

    @property
    def sent(self) -> int:
        """Transactions that the renter ever sent."""
        return int(self.money.rpc("eth_getTransactionCount", self.money.renter.address, "latest"), 16)

    def rental(self, lease_id: str) -> Rental:
        return self.money.escrow(MemoryOutbox()).view(lease_id)

    def open_rentals(self) -> list[Rental]:
        return list(self.money.escrow(MemoryOutbox()).open_rentals())

    # ---- the node ------------------------------------------------------------------------------------------

    def let_in(self) -> str:
        return (self.folder / "node" / "authorized_keys").read_text()

    def of_renter(self) -> list[int]:
        """Processes below the ssh server, the server itself left out."""
        node = self.node
        return sorted({*reaper.descendants(node.pid)[1:], *(reaper.of_user(node.uid) if node.uid is not None else ())})

    # ---- other providers -----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def provider(self, laptop: Laptop, offer: Mapping[str, Any] | None = None, **changes: Any) -> Iterator[None]:
        """Another provider on the same chain, with these changes to its configuration: the one that `laptop`'s lab has."""
        folder = laptop.folder / "provider"
        folder.mkdir()
        key = wallet.lab_key(folder / "provider.key")
        chain.call(self.money.url, "anvil_setBalance", key.address, hex(GAS_WEI))
        page = json.loads((self.folder / "provider.json").read_text())
        port = lab_node.free_port()
        page |= {"listen_port": port, "key_file": str(folder / "provider.key"), "state_folder": str(folder / "state")}
        page |= {**changes, "offer": {**page["offer"], **(offer or {})}}
        (folder / "provider.json").write_text(json.dumps(page, separators=(",", ":"), sort_keys=True))
        url, log = f"http://127.0.0.1:{port}", folder / "provider.log"
        pid = processes.spawn("orchestrator.provider", [str(folder / "provider.json")], log)
        try:
            processes.answers(f"{url}/v1/info", pid, "orchestrator.provider", log)
            self.lead(laptop, provider_url=url, provider_pid=pid)
            yield
        finally:
            processes.end(pid, "orchestrator.provider")

    def lead(self, laptop: Laptop, **changes: Any) -> None:
        """The laptop's own view of the lab, with these changes."""
        own = laptop.state / "lab"
        page = json.loads((self.owner.state / "lab" / "lab.json").read_text())
        own.unlink()
        own.mkdir(mode=0o700)
        (own / "lab.json").write_text(json.dumps({**page, **changes}))


@contextlib.contextmanager
def lab(folder: Path) -> Iterator[Lab]:
    """`sealtune lab up`, and at the end `lab down` and a look whether anything is left."""
    owner = Laptop(folder)
    facts = owner.sealtune("lab", "up", "--json").tree
    try:
        yield Lab(owner, _money(facts), facts)
    finally:
        owner.sealtune("lab", "down")
        sandbox.remove(Path(facts["folder"]) / "node")
    assert left_of(folder) == [], "lab down left something running"


def _money(facts: Mapping[str, Any]) -> labchain.Lab:
    money = facts["money"]
    return labchain.Lab(
        facts["chain_url"], Path(facts["folder"]) / "chain", EscrowFacts(money["chain_id"], money["escrow"], money["token"]),
        wallet.load_key(Path(money["renter_key"])), wallet.load_key(Path(money["provider_key"])))


def left_of(folder: Path) -> list[str]:
    """Command lines of living processes that name this folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if str(folder) in words and int(entry.name) != os.getpid():
                found.append(words)
    return found
