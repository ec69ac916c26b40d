"""The ports: what the story may ask of the world. Each docstring is the specification of every driver.

Four rules hold for all of them.

1. One intent, one effect. Every verb that changes the outside takes one frozen value, and calling it again
   with the same value has no second effect and returns the same answer. Where the outside cannot promise
   that, the port has a question beside the verb (`open` and `find`).
2. Drivers do not wait, repeat or journal. A call returns or raises within its stated time. Waiting, repeating
   and remembering belong to the ledger, so they are written once and run under the simulated clock.
3. Errors mean something for the run (see errors.py): NothingMade, Transient, OutcomeUnknown. A driver
   translates its library's errors at its own border, chained.
4. What a driver cannot do is a value (None, zero, an empty tuple), never a trait to branch on.

Ports that only rooms see, one room served by another, stand in second_row.py.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from .domain.document import Json
from .domain.event import Deed, Event, Kind, Owed
from .domain.evidence import HardwareReport, ReportOrder, SealedReport, WipeEvidence, WipeOrder
from .domain.lease import (
    Access,
    Ended,
    Ending,
    Found,
    Funded,
    Funding,
    HardwareClaim,
    Hold,
    Lease,
    LeaseView,
    Offer,
    Order,
    Refunded,
    Terms,
    Wish,
)
from .domain.money import Money, Settlement
from .domain.names import Digest, Instant, LeaseKey, RunId
from .domain.progress import Finished, Seen
from .domain.spool import Adapter, Installed, Payload, Spool
from .domain.training import (
    Agreement,
    Armed,
    BaseModel,
    DataFile,
    DatasetFacts,
    Deadline,
    Job,
    Started,
    TrainingSpec,
)

# ---- renting ------------------------------------------------------------------------------------------


class Market(Protocol):
    """Where nodes come from: the open market, a custodial market, the user's own server, or all of them.

    Money has no port of its own here. What a lease costs, what is prepaid and what comes back are values
    on its answers; a market without deposits answers with zero. Each call ≤ 30 s.
    """

    def offers(self, wish: Wish) -> Sequence[Offer]:
        """Read only. Every offer on every page; choosing (planning/choose.py) says why one does not fit. Refused where the
        user's own machine does not let us in: there is no other."""
        ...

    def funding(self, offers: Sequence[Offer], most: Money, until: Instant) -> Funding | None:
        """Read only. How a second key may pay these offers' providers up to `most`; None where the wallet pays each deposit
        itself. Journalled before `fund`. NothingMade or Transient."""
        ...

    def fund(self, funding: Funding) -> Funded:
        """Ask the person for the one signature, and open it. ≤ 11 min, which are the person's. NothingMade: no signature,
        or not this one, or no money for it. OutcomeUnknown: sent, and not seen yet; again asks for no second one."""
        ...

    def refund(self, funding: Funding) -> Refunded:
        """Close it: what is left of it, and of the second key's coin, goes to the owner. Never opened, or closed already: a
        refund of nothing. After the leases, since the second key is what ends them."""
        ...

    def prepare(self, offer: Offer, terms: Terms) -> Order:
        """Read only: a fresh price check, the provider's signed quote, the ids that exist before we rent.

        The order is journalled before `open` and carries all that `find` will need after a crash.
        Raises NothingMade (OfferGone, NoFunds) or Transient. A price above the offer's is OfferGone; an inspection
        window shorter than `terms.check_seconds` too.
        """
        ...

    def open(self, order: Order) -> Lease:
        """Rent, and pay ahead where the market wants it. The only verb that may not be safe to repeat.

        Returns as soon as the lease has an id; it need not be ready. NothingMade: the world surely did
        not change. Everything else, a 5xx and a lost answer included, is OutcomeUnknown.
        """
        ...

    def find(self, order: Order) -> Lease | None:
        """Did `open` with this order happen? None means: no, after one complete look, ≥ 120 s after
        `placed_at` where the market lists late. Too early: Transient with `retry_at`. The ledger looks
        twice before it believes None. A lease that is over already is found, not None."""
        ...

    def look(self, lease: Lease) -> LeaseView:
        """Read only, cheap (a view up to 15 s old will do): access, funded until, cost so far, closed by whom.

        A market's 404 is "closed" only by the rule of `find`; a list that failed is Unreachable."""
        ...

    def hold(self, hold: Hold) -> LeaseView:
        """Make the lease last until `hold.until`, and where the market has deadlines, no longer.

        Escrow: extend to the absolute total. Deadline market: move the removal time. Others: nothing.
        Never shortens. The view is read back; `funded_until` < `until` means that it did not happen.
        Raises NothingMade when `total_at_most` would be passed."""
        ...

    def end(self, ending: Ending) -> Ended:
        """End it for good (never merely stop), with its disks, keys and scripts. Ended already: same answer,
        with who ended it. HARDWARE inside the inspection window: reject, full refund. Never activated:
        cancel. Accepted but not yet gone: Transient. `Ended` is returned only when the world confirms it."""
        ...

    def end_many(self, endings: Sequence[Ending]) -> None:
        """Before `end` of each, which gives the same answers: where a market can end many at once, it does so here. What was
        not ended is not said; `end` says it. A market where each costs the same does nothing. May take minutes."""
        ...

    def settle(self, lease: Lease) -> Settlement:
        """Bring home what is ours and say how it was paid. Escrow: read the closing, withdraw a credit.
        Custodial: the charges. Not final yet: Transient."""
        ...

    def mine(self) -> Sequence[Found]:
        """Every lease with our mark that may still bill or still holds money of ours, in any state, on every
        page, or Unreachable. Needs credentials or the wallet, no journal. For the sweep, not for the story."""
        ...


# ---- the node -----------------------------------------------------------------------------------------


class Hardware(Protocol):
    def inspect(self, claim: HardwareClaim | None) -> HardwareReport:
        """Independent views compared by numbered rules. A mismatch is a report, not an error. ≤ 60 s."""
        ...

    def challenge(self, claim: HardwareClaim | None) -> HardwareReport:
        """Fill, compute, open, verify here. A fresh seed on every call. ≤ 300 s."""
        ...


class Cargo(Protocol):
    def install(self, payload: Payload) -> Installed:
        """Payload by digest, environment from its lock; already there is success. ≤ 30 min.
        LeaveNode(UNSUITABLE) when the node cannot hold it."""
        ...

    def fetch(self, base: BaseModel) -> Digest:
        """The base model by commit from its hub, every file's digest checked; digest of the file table. ≤ 2 h."""
        ...

    def ship(self, spool: Spool) -> Digest:
        """Send the parts that the node does not have; return the node's digest of the whole, compared.
        ≤ 10 min and the time that its bytes take at 64 KiB/s."""
        ...


class Jobs(Protocol):
    def start(self, job: Job, secret: bytes) -> Started:
        """Start detached, the secret in the frame's body. The same job id again: the first answer."""
        ...

    def follow(self, job: Job, home: Path) -> Iterator[Seen]:
        """Mirror what the job publishes to `home` and say what came: records, sealed files, the end.

        Goes on where `home` stands, so no cursor is kept anywhere else: no record lost, none twice. Yields a
        Tick at least every second, whether or not the node answers; reconnects for ever by itself; Finished
        comes last, after everything published is at home. Only HostKeyChanged is raised. Bulk runs beside
        it on its own connection and thread; what it brings is handed over here."""
        ...

    def stop(self, job: Job, home: Path) -> Finished:
        """Ask the job to seal a last checkpoint, then TERM, then KILL; take home what is published. ≤ 180 s."""
        ...


class Custody(Protocol):
    def arm(self, deadline: Deadline) -> Armed:
        """Start the keeper if it does not run and set when it acts alone. Later targets win. Read back."""
        ...

    def beat(self, deadline: Deadline) -> None:
        """Carried by the next poll of `follow`: the keeper hears that we live and learns the later deadline.
        Never blocks, never raises; a lost beat is mended by the next."""
        ...

    def wipe(self, order: WipeOrder) -> WipeEvidence:
        """Overwrite and remove all that this lease made, take the inventory, scan, end the keeper. The same
        order goes on where it stopped; a finished one answers with its evidence. PARTIAL is an answer."""
        ...


class Node(Hardware, Cargo, Jobs, Custody, Protocol):
    """One node. Connecting is not a verb: the session opens on the first call, pinned to `access`, and comes
    back by itself inside the verb's time. After that NodeLost, never Transient: waiting has been done.
    HostKeyChanged at once and before any byte of ours."""


class Nodes(Protocol):
    def at(self, access: Access, ssh_key: bytes, lease: LeaseKey, patience: int) -> Node:
        """`patience`: seconds for which a verb tries to reach a silent node before NodeLost. `ssh_key`: OpenSSH PEM.
        The same arguments give the same session while it lives."""
        ...

    def close(self) -> None:
        """Close every session."""
        ...


# ---- secrets and sealing --------------------------------------------------------------------------------


class Vault(Protocol):
    """Secrets on the laptop: files 0600 in a folder 0700. Durable on return; nothing else knows where."""

    def create(self, name: str, kind: str) -> str:
        """Make an "age" identity, an "ssh" ed25519 key, a "secp256k1" key (64 hex) or a "token" (48 random hex); return the
        public half ("age1…", "ssh-ed25519 AAAA…", the point "04…", the token's "sha256:…"). Existing name: the same half."""
        ...

    def read(self, name: str) -> bytes:
        """The private half: an AGE-SECRET-KEY-1… line, an unencrypted OpenSSH PEM, the token itself."""
        ...

    def destroy(self, name: str) -> None:
        """Overwrite and unlink; gone already is success."""
        ...


class Sealer(Protocol):
    def seal(self, source: Path, folder: Path, name: str, recipient: str) -> Spool:
        """Compress (zstd), encrypt (age), digest by parts into `folder/name`. An existing complete spool for the
        same recipient is returned as it is."""
        ...

    def reseal(self, sealed: Path, identity: bytes, folder: Path, name: str, recipient: str) -> Spool:
        """Open and seal again without plaintext on disk: a checkpoint moving to the next node. Not recompressed.
        One that does not open: DoesNotOpen, never Transient, since nobody will bring other bytes. Whatever else is wrong
        is wrong with this laptop (no room, no such key): another SealtuneError."""
        ...

    def discard(self, folder: Path) -> None: ...


# ---- the laptop -----------------------------------------------------------------------------------------


class Journal(Protocol):
    """Append-only, hash-chained, on disk when `append` returns. One writer holds the run lock."""

    def append(self, deed: Deed, kind: Kind, public: Json = None, private: Json = None,
               acquires: tuple[str, ...] = (), releases: tuple[str, ...] = ()) -> Event: ...
    def events(self) -> Sequence[Event]:
        """All rows of this run, oldest first; cheap to call often."""
        ...

    def contact(self) -> None:
        """This process lives and watches its run. Cheap; not a row."""
        ...


class Journals(Protocol):
    def create(self, run: RunId) -> AbstractContextManager[Journal]: ...
    def lock(self, run: RunId) -> AbstractContextManager[Journal]:
        """Raises NoSuchRun, RunLocked."""
        ...

    def read(self, run: RunId) -> Sequence[Event]: ...
    def runs(self) -> Sequence[RunId]:
        """Oldest first."""
        ...

    def in_use(self, run: RunId) -> bool:
        """A living process holds the run's lock."""
        ...

    def last_contact(self, run: RunId) -> Instant: ...


class Datasets(Protocol):
    def check(self, file: DataFile) -> DatasetFacts:
        """Read every line; BadInput names the first faulty ones. Splits by stable hash."""
        ...

    def rows(self, facts: DatasetFacts, canary: str) -> Path:
        """Write the rows as the trainer reads them (header with the canary first) into the run's folder, 0600.
        BadInput when the file is not the one that was checked."""
        ...

    def forget(self) -> None:
        """Remove what `rows` wrote."""
        ...


class Hub(Protocol):
    def resolve(self, model: str, revision: str) -> BaseModel:
        """Read only: repo and revision to a commit and a table of file digests. BadInput for an unknown model,
        one without safetensors, or a gated one (with the licence's address as hint). Unreachable."""
        ...

    def describe(self, base: BaseModel) -> Mapping[str, Json]:
        """Read only: the model's config.json, the bytes that `base` names. BadInput, Unreachable."""
        ...


class Payloads(Protocol):
    def fitting(self, hardware: HardwareReport, engine: str) -> Payload:
        """The payload archive and the lock for this driver. LeaveNode(UNSUITABLE) when none fits."""
        ...


class Results(Protocol):
    def admit(self, home: Path, spec: TrainingSpec, identity: bytes) -> Adapter:
        """Open, check, write `home`'s adapter.age anew into the output folder, and evaluation.age beside it: it shows rows.
        A file that does not open: put aside, Transient (it is fetched once more), and StopRun when that does not help."""
        ...


class Notary(Protocol):
    """Signs what the journal says. Both verbs are pure functions of the rows they are given."""

    def seal(self, order: ReportOrder, events: Sequence[Event]) -> SealedReport:
        """Write and sign the lease's report over the first `order.count` rows."""
        ...

    def close(self, events: Sequence[Event]) -> None:
        """Write events.jsonl and the signed closing record over all rows: endings, refunds, salts."""
        ...


class Clock(Protocol):
    def now(self) -> Instant:
        """Wall clock. It goes on while the laptop sleeps, which a monotonic clock does not on every system."""
        ...

    def sleep(self, seconds: int) -> None: ...


class Entropy(Protocol):
    def token(self, size: int) -> str:
        """`size` random bytes as hex."""
        ...


class Observer(Protocol):
    """The screen, the log file, --json. Never raises, never blocks, decides nothing."""

    def event(self, event: Event) -> None: ...
    def seen(self, seen: Seen) -> None: ...
    def waiting(self, problem: str, until: Instant) -> None:
        """Somebody does not answer and is asked again until then; said at every try."""
        ...


class Person(Protocol):
    def confirm(self, agreement: Agreement) -> bool:
        """Show what it can cost and what the operator can see; ask, or answer from --yes and policy."""
        ...

    def interrupted(self, owed: Iterable[Owed], giving_back: bool) -> str:
        """Say what is still running; answer wait | detach | stop. `giving_back`: the run is over and what it acquired is
        on its way back; then wait, or stop and leave it for later."""
        ...
