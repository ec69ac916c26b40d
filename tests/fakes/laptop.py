"""The laptop's side of the simulated world: the ports beside market and node, and the house made of all of them."""
from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from orchestrator.domain.document import Json, digest_of
from orchestrator.domain.event import Deed, Event, Kind, Owed
from orchestrator.domain.evidence import (
    HardwareReport,
    ReportOrder,
    SealedReport,
)
from orchestrator.domain.names import Digest, Instant, Reason, RunId
from orchestrator.domain.progress import Seen
from orchestrator.domain.spool import Adapter, Figures, Payload, Spool
from orchestrator.domain.training import (
    Agreement,
    BaseModel,
    DataFile,
    DatasetFacts,
    TrainingSpec,
)
from orchestrator.errors import StopRun
from orchestrator.house import House
from tests.fakes.world import FakeClock, FakeMarket, FakeNodes, World


class FakeVault:
    def __init__(self, w: World) -> None: self.w = w
    def create(self, name: str, kind: str) -> str: return self.w.vault.setdefault(name, f"pub {name}")
    def read(self, name: str) -> bytes: return self.w.vault[name].encode()
    def destroy(self, name: str) -> None: self.w.vault.pop(name, None)


class FakeSealer:
    def __init__(self, w: World) -> None: self.w = w

    def seal(self, source: Path, folder: Path, name: str, recipient: str) -> Spool:
        return Spool(name, Digest("sha256:data"), 9, (Digest("sha256:p"),), str(folder))

    def reseal(self, sealed: Path, identity: bytes, folder: Path, name: str, recipient: str) -> Spool:
        step = sealed.name.removeprefix("checkpoint-").removesuffix(".age")
        return Spool(name, Digest(f"sha256:{step}"), 9, (), str(folder))

    def discard(self, folder: Path) -> None: ...


class FakeDatasets:
    def check(self, file: DataFile) -> DatasetFacts:
        return DatasetFacts(Digest("sha256:d"), "messages", "messages", 500, 450, 50, (), file.path)

    def rows(self, facts: DatasetFacts, canary: str) -> Path: return Path("rows.jsonl")
    def forget(self) -> None: ...


class FakeHub:
    def resolve(self, model: str, revision: str) -> BaseModel: return BaseModel("hub", model, "0" * 40, ())

    def describe(self, base: BaseModel) -> Mapping[str, Json]:
        """A model that no plan can be made for: in this world a job takes as long as a test needs."""
        return {"model_type": "mixtral", "num_local_experts": 8}


class FakePayloads:
    def fitting(self, hardware: HardwareReport, engine: str) -> Payload:
        return Payload(Digest("sha256:pl"), Digest("sha256:lock"), "cu13")


class FakeResults:
    def __init__(self, w: World) -> None: self.w = w

    def admit(self, home: Path, spec: TrainingSpec, identity: bytes) -> Adapter:
        if "adapter.age" not in self.w.shelf.get(home.name, []):
            raise StopRun(Reason.FAILED, "no adapter at home")
        return Adapter(Digest("sha256:adapter"), Figures("0.00", "6.2"), Figures("0.97", "0.1"), 50, 8, str(home))


class FakeNotary:
    """Remembers what was sealed before which lease ended, and checks what a real one would refuse."""

    def __init__(self, w: World) -> None: self.w = w

    def seal(self, order: ReportOrder, events: Sequence[Event]) -> SealedReport:
        assert events[order.count - 1].digest() == order.head
        return SealedReport(digest_of(order), digest_of((order.salt, order.head)), "SHA256:us")

    def close(self, events: Sequence[Event]) -> None:
        self.w.closed_at_row = len(events)


class FakeEntropy:
    def __init__(self, w: World) -> None: self.w = w
    def token(self, size: int) -> str:
        self.w.tokens += 1
        return f"{self.w.tokens:032x}"


class Quiet:
    def event(self, event: Event) -> None: ...
    def seen(self, seen: Seen) -> None: ...
    def waiting(self, problem: str, until: Instant) -> None: ...


class FakePerson:
    """`patient`: waits, once everything is being given back."""

    def __init__(self, answer: str, patient: bool = True) -> None: self.answer, self.patient, self.asked = answer, patient, 0
    def confirm(self, agreement: Agreement) -> bool: return True
    def interrupted(self, owed: Iterable[Owed], giving_back: bool) -> str:
        self.asked += 1
        return "wait" if giving_back and self.patient else self.answer


class FakeJournal:
    """Persists in the world; a crash is a wrapper here, so that the product needs no hook."""

    def __init__(self, w: World, crash: Callable[[str, int], None] = lambda when, n: None) -> None:
        self.w, self.crash, self.n = w, crash, 0

    def append(self, deed: Deed, kind: Kind, public: Json = None, private: Json = None,
               acquires: tuple[str, ...] = (), releases: tuple[str, ...] = ()) -> Event:
        self.n += 1
        self.crash("before", self.n)
        prev = self.w.head
        public, private = json.loads(json.dumps(public, default=str)), json.loads(json.dumps(private, default=str))
        event = Event(len(self.w.events), prev, Instant(self.w.now), deed, kind, acquires, releases, public, private)
        self.w.events.append(event)
        self.w.head = event.digest()
        self.crash("after", self.n)
        return event

    def events(self) -> Sequence[Event]: return self.w.events
    def contact(self) -> None: self.w.contact = self.w.now


def house(w: World, crash: Callable[[str, int], None] = lambda when, n: None, answer: str = "stop") -> House:
    return House(RunId("run-1"), Path("home") / "run-1", FakeJournal(w, crash), FakeMarket(w), FakeNodes(w), FakeVault(w),
                 FakeSealer(w), FakeDatasets(), FakeHub(), FakePayloads(), FakeResults(w), FakeNotary(w), FakeClock(w),
                 FakeEntropy(w), Quiet(), FakePerson(answer))
