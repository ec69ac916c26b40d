"""The sender's memory: durable before anything is sent, the same after a crash, one writer a wallet."""
from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.journal.database import JournalTrouble
from orchestrator.journal.journals import Journals
from orchestrator.journal.outbox import Attempt, Outbox
from tests.fakes.clock import StoppedClock

pytestmark = pytest.mark.money
WALLET, OTHER = "31337:0x" + "aB" * 20, "31337:0x" + "cd" * 20
ROOT = Path(__file__).resolve().parents[3]


def signed(nonce: int, fee: int = 1) -> Attempt:
    return Attempt(nonce, f"raw {nonce} {fee}".encode(), f"0x{nonce:032x}{fee:032x}")


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    return Outbox(tmp_path)


class TestAttempts:
    def test_kept_in_order_and_once(self, outbox: Outbox, tmp_path: Path) -> None:
        assert outbox.attempts(WALLET, "create") == []
        for attempt in (signed(4), signed(4, 2), signed(4)):
            outbox.keep(WALLET, "create", attempt)
        outbox.keep(OTHER, "create", signed(4))
        assert Outbox(tmp_path).attempts(WALLET, "create") == [signed(4), signed(4, 2)]

    def test_an_address_is_the_same_in_any_case(self, outbox: Outbox) -> None:
        outbox.keep(WALLET, "create", signed(1))
        assert outbox.attempts(WALLET.lower(), "create") == [signed(1)]
        assert outbox.pending(WALLET.lower()) == [("create", signed(1))]

    def test_pending_until_concluded_oldest_nonce_first(self, outbox: Outbox) -> None:
        for key, nonce in (("c", 3), ("a", 1), ("b", 2)):
            outbox.keep(WALLET, key, signed(nonce))
        outbox.keep(WALLET, "a", signed(1, 2))
        assert outbox.pending(WALLET) == [("a", signed(1)), ("a", signed(1, 2)), ("b", signed(2)), ("c", signed(3))]
        outbox.conclude(WALLET, "a", "mined")
        outbox.conclude(WALLET, "b", "dead")
        assert outbox.pending(WALLET) == [("c", signed(3))] and outbox.pending(OTHER) == []

    def test_only_the_dead_are_signed_again(self, outbox: Outbox) -> None:
        for key, outcome in (("gone", "dead"), ("made", "mined")):
            outbox.keep(WALLET, key, signed(1 if key == "gone" else 2))
            outbox.conclude(WALLET, key, outcome)
        outbox.keep(WALLET, "gone", signed(7))
        assert outbox.pending(WALLET) == [("gone", signed(7))]
        with pytest.raises(JournalTrouble, match="mined"):
            outbox.keep(WALLET, "made", signed(8))
        outbox.keep(WALLET, "made", signed(2))       # the same bytes: nothing new

    def test_an_outcome_twice_or_of_nothing(self, outbox: Outbox) -> None:
        outbox.conclude(WALLET, "never signed", "dead")
        outbox.keep(WALLET, "k", signed(1))
        outbox.conclude(WALLET, "k", "mined")
        outbox.conclude(WALLET, "k", "mined")
        assert outbox.pending(WALLET) == []

    def test_an_unknown_outcome_is_refused(self, outbox: Outbox) -> None:
        outbox.keep(WALLET, "k", signed(1))
        with pytest.raises(JournalTrouble):
            outbox.conclude(WALLET, "k", "probably")
        assert outbox.pending(WALLET) == [("k", signed(1))]

    @pytest.mark.parametrize("sql", ["UPDATE attempts SET raw = x'00'", "DELETE FROM attempts",
                                     "INSERT OR REPLACE INTO attempts SELECT * FROM attempts",
                                     "INSERT OR REPLACE INTO attempts SELECT id + 9, wallet, key, 9, hash, raw "
                                     "FROM attempts",
                                     "UPDATE outcomes SET outcome = 'dead'", "DELETE FROM outcomes"])
    def test_the_database_refuses_changes(self, outbox: Outbox, tmp_path: Path, sql: str) -> None:
        outbox.keep(WALLET, "k", signed(1))
        outbox.conclude(WALLET, "k", "mined")
        with sqlite3.connect(tmp_path / "journal.sqlite") as db:
            with pytest.raises(sqlite3.IntegrityError):
                db.execute(sql)
        db.close()

    def test_it_shares_the_file_with_the_journal(self, outbox: Outbox, tmp_path: Path) -> None:
        Journals(tmp_path, StoppedClock()).close()
        outbox.keep(WALLET, "k", signed(1))
        assert [p.name for p in tmp_path.glob("*.sqlite")] == ["journal.sqlite"]


class TestLock:
    def test_one_writer_a_wallet(self, outbox: Outbox, tmp_path: Path) -> None:
        entered = threading.Event()

        def second() -> None:
            with Outbox(tmp_path).lock(WALLET.lower()):
                entered.set()

        with outbox.lock(WALLET), outbox.lock(OTHER):
            thread = threading.Thread(target=second)
            thread.start()
            assert not entered.wait(0.1)
        assert entered.wait(10)
        thread.join()

    @pytest.mark.parametrize("name", ["", "../x", "1:0xzz", "1:0x" + "a" * 39, "x:0x" + "a" * 40])
    def test_a_wallet_is_never_a_path(self, outbox: Outbox, name: str) -> None:
        with pytest.raises(ValueError, match="not a wallet"):
            outbox.lock(name)


def test_killed_while_keeping(tmp_path: Path) -> None:
    """What was said to be kept is kept, byte for byte."""
    script = textwrap.dedent(f"""
        import sys; from pathlib import Path
        from orchestrator.journal.outbox import Attempt, Outbox
        outbox, n = Outbox(Path(sys.argv[1])), 0
        while True:
            with outbox.lock("{WALLET}"):
                outbox.keep("{WALLET}", str(n), Attempt(n, b"x" * 2000 + str(n).encode(), hex(n)))
            print(n, flush=True); n += 1
        """)
    writer = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], cwd=ROOT, text=True,
                              stdout=subprocess.PIPE)
    assert writer.stdout
    said = [int(writer.stdout.readline()) for _ in range(20)]
    writer.send_signal(signal.SIGKILL)
    said += [int(line) for line in writer.stdout if line.endswith("\n")]
    writer.stdout.close()
    writer.wait()
    outbox = Outbox(tmp_path)
    assert all(outbox.attempts(WALLET, str(n)) == [Attempt(n, b"x" * 2000 + str(n).encode(), hex(n))] for n in said)
    with outbox.lock(WALLET):
        assert len(outbox.pending(WALLET)) - len(said) in (0, 1)


KEYS, VERBS = st.sampled_from("abc"), st.sampled_from(["keep", "mined", "dead", "reopen"])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(VERBS, KEYS), max_size=25))
def test_against_a_model(tmp_path_factory: pytest.TempPathFactory, moves: list[tuple[str, str]]) -> None:
    """Any order of verbs: `attempts` only grows, `pending` is what no outcome has closed."""
    folder = tmp_path_factory.mktemp("outbox")
    outbox, kept, closed, mined = Outbox(folder), {}, {}, set()    # type: ignore[var-annotated]
    for nonce, (verb, key) in enumerate(moves):
        if verb == "reopen":
            outbox.close()
            outbox = Outbox(folder)
        elif verb != "keep":
            outbox.conclude(WALLET, key, verb)
            if len(kept.get(key, [])) > closed.get(key, 0):
                closed[key] = len(kept[key])
                mined |= {key} if verb == "mined" else set()
        elif key in mined:
            with pytest.raises(JournalTrouble):
                outbox.keep(WALLET, key, signed(nonce))
        else:
            outbox.keep(WALLET, key, signed(nonce))
            kept.setdefault(key, []).append(signed(nonce))
    assert all(list(outbox.attempts(WALLET, k)) == kept.get(k, []) for k in "abc")
    still = sorted((a.nonce, k) for k, attempts in kept.items() for a in attempts[closed.get(k, 0):])
    assert [(a.nonce, k) for k, a in outbox.pending(WALLET)] == still
    outbox.close()
