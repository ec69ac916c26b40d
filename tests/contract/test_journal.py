"""What every journal must do, and what this one does when its process dies or its file is edited."""
from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from orchestrator.domain.document import decode, encode
from orchestrator.domain.event import GENESIS, Deed, Kind, head, last, owed
from orchestrator.domain.lease import Access
from orchestrator.domain.names import RunId
from orchestrator.errors import NoSuchRun, Refused, RunLocked, SealtuneError
from orchestrator.journal.database import JournalTrouble
from orchestrator.journal.journals import JournalChanged, Journals
from tests.fakes.clock import StoppedClock

pytestmark = pytest.mark.noleak
RUN = RunId("contract-clauses-1")
OPEN = Deed("lease-1", "open")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def journals(tmp_path: Path) -> Journals:
    return Journals(tmp_path / "state", StoppedClock())


def another(journals: Journals) -> Journals:
    """The same state directory, as another process would open it."""
    return Journals(journals._state, StoppedClock())


def edit(journals: Journals, sql: str, *values: object) -> None:
    """What a person with an editor could do: triggers away, then the change."""
    with sqlite3.connect(journals._state / "journal.sqlite") as db:
        for name, in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        db.execute(sql, values)
    db.close()


def child(state: Path, body: str) -> subprocess.Popen[str]:
    script = "from pathlib import Path\nimport sys, os\n" + textwrap.dedent("""
        from orchestrator.domain.event import Deed, Kind
        from orchestrator.journal.journals import Journals
        from orchestrator.journal.outbox import Attempt, Outbox
        from tests.fakes.clock import StoppedClock
        state = Path(sys.argv[1])
        journals = Journals(state, StoppedClock())
    """) + textwrap.dedent(body)
    return subprocess.Popen([sys.executable, "-c", script, str(state)], cwd=ROOT, text=True, stdout=subprocess.PIPE)


class TestRows:
    def test_what_is_appended_is_read_by_everybody(self, journals: Journals) -> None:
        access = Access("node.example", 22, "root", ("ssh-ed25519 AAAA",), "signed")
        with journals.create(RUN) as journal:
            journal.append(OPEN, Kind.INTENDED, {"rate": 5}, {"path": "x"}, acquires=("lease", "deposit"))
            journal.append(OPEN, Kind.DONE, *encode(access), acquires=("lease", "deposit"))
            mine = journal.events()
        theirs = another(journals).read(RUN)
        assert list(mine) == list(theirs)
        assert [e.seq for e in theirs] == [0, 1]
        assert theirs[0].prev == GENESIS and theirs[1].prev == theirs[0].digest() and head(theirs) == theirs[1].digest()
        assert decode(Access, theirs[1].public, theirs[1].private) == access
        assert [o.what for o in owed(theirs)] == ["lease", "deposit"]
        assert last(theirs, OPEN, Kind.INTENDED) == theirs[0]

    def test_the_private_part_is_not_in_the_line_and_cannot_be_guessed_from_it(self, journals: Journals) -> None:
        with journals.create(RUN) as journal:
            one = journal.append(OPEN, Kind.NOTED, None, {"port": 22})
            two = journal.append(OPEN, Kind.NOTED, None, {"port": 22})
        assert b"22" not in one.line().replace(str(one.at).encode(), b"").split(b'"private"')[0]
        assert one.line().split(b'"private":')[1].split(b",")[0] != two.line().split(b'"private":')[1].split(b",")[0]

    def test_runs_come_oldest_first_and_do_not_mix(self, journals: Journals) -> None:
        for name in ("b-run", "a-run"):
            with journals.create(RunId(name)) as journal:
                journal.append(Deed("run", "check"), Kind.INTENDED, {"run": name})
        assert list(another(journals).runs()) == ["b-run", "a-run"]
        assert [e.public for e in journals.read(RunId("a-run"))] == [{"run": "a-run"}]

    @pytest.mark.parametrize("value", [0.5, {"loss": 1.25}, float("nan"), {1, 2}, "\ud800"])
    def test_what_has_no_canonical_bytes_is_not_written(self, journals: Journals, value: object) -> None:
        with journals.create(RUN) as journal:
            with pytest.raises((TypeError, ValueError)):
                journal.append(OPEN, Kind.NOTED, value)
            assert journal.append(OPEN, Kind.NOTED, "fine").seq == 0

    def test_a_reader_sees_the_rows_of_a_living_writer(self, journals: Journals) -> None:
        reader = another(journals)
        with journals.create(RUN) as journal:
            for n in range(3):
                journal.append(OPEN, Kind.NOTED, n)
                assert [e.public for e in reader.read(RUN)] == list(range(n + 1))


class TestLock:
    def test_one_writer_a_run(self, journals: Journals) -> None:
        with journals.create(RUN):
            assert journals.in_use(RUN) and another(journals).in_use(RUN)
            with pytest.raises(RunLocked, match=str(os.getpid())), another(journals).lock(RUN):
                pass
        assert not journals.in_use(RUN)
        with another(journals).lock(RUN):
            assert journals.in_use(RUN)

    def test_who_let_go_writes_no_more(self, journals: Journals) -> None:
        with journals.create(RUN) as journal:
            journal.append(OPEN, Kind.NOTED)
        with pytest.raises(RunLocked):
            journal.append(OPEN, Kind.NOTED)
        assert len(journals.read(RUN)) == 1

    def test_a_run_is_created_once(self, journals: Journals) -> None:
        with journals.create(RUN) as journal:
            with pytest.raises(Refused, match="exists"):
                journals.create(RUN)
            journal.append(Deed("run", "check"), Kind.INTENDED)
        with pytest.raises(Refused, match="exists"):
            journals.create(RUN)

    def test_a_crash_before_the_first_row_leaves_the_name_free(self, journals: Journals) -> None:
        with journals.create(RUN):
            pass
        with journals.create(RUN) as journal:
            journal.append(Deed("run", "check"), Kind.INTENDED)
        assert list(journals.runs()) == [RUN]

    @pytest.mark.parametrize("name", ["", "..", "../x", "a/b", "A B", "-x", "x" * 81, "x\n"])
    def test_a_name_is_never_a_path(self, journals: Journals, name: str) -> None:
        with pytest.raises(Refused):
            journals.create(RunId(name))
        with pytest.raises(NoSuchRun):
            journals.read(RunId(name))

    def test_no_such_run(self, journals: Journals) -> None:
        for ask in (journals.read, journals.lock, journals.in_use, journals.last_contact):
            with pytest.raises(NoSuchRun):
                ask(RUN)

    def test_contact_is_the_time_of_the_one_who_watches(self, journals: Journals) -> None:
        clock = journals._clock
        with journals.create(RUN) as journal:
            clock.sleep(100)
            journal.contact()
            clock.sleep(5)
        assert another(journals).last_contact(RUN) == clock.now() - 5
        assert not journals.read(RUN)

    def test_without_its_folder_a_run_is_still_known(self, journals: Journals) -> None:
        with journals.create(RUN) as journal:
            journal.append(OPEN, Kind.NOTED)
        (journals._state / "runs" / RUN / "lock").unlink()
        assert journals.last_contact(RUN) == journals.read(RUN)[0].at and not journals.in_use(RUN)
        with journals.lock(RUN) as journal:
            assert len(journal.events()) == 1


class TestEdited:
    """Nobody changes a row: not by a statement, and not unnoticed."""

    @pytest.fixture
    def three(self, journals: Journals) -> Journals:
        with journals.create(RUN) as journal:
            for n in range(3):
                journal.append(Deed("run", "note", str(n)), Kind.NOTED, {"n": n}, {"secret": n})
        return another(journals)

    @pytest.mark.parametrize("sql", [
        "UPDATE rows SET line = '{}'", "DELETE FROM rows", "DELETE FROM rows WHERE seq = 2",
        "INSERT OR REPLACE INTO rows (run, seq, line, private, salt) VALUES ('contract-clauses-1', 1, '', '', '')",
        "INSERT OR REPLACE INTO rows VALUES (2, 'contract-clauses-1', 3, '', '', '')",
        "INSERT INTO rows (run, seq, line, private, salt) VALUES ('contract-clauses-1', 4, '', '', '')",
    ])
    def test_the_database_refuses(self, three: Journals, sql: str) -> None:
        with sqlite3.connect(three._state / "journal.sqlite") as db:
            with pytest.raises(sqlite3.IntegrityError):
                db.execute(sql)
        db.close()
        assert len(three.read(RUN)) == 3

    @pytest.mark.parametrize("sql", [
        """UPDATE rows SET line = replace(line, '"n":1', '"n":7') WHERE seq = 1""",
        "UPDATE rows SET private = '{}' WHERE seq = 1",
        "UPDATE rows SET salt = 'x' WHERE seq = 1",
        "UPDATE rows SET line = line || ' ' WHERE seq = 1",
        "UPDATE rows SET line = 'no json' WHERE seq = 2",
        "UPDATE rows SET private = '{' WHERE seq = 2",
        "UPDATE rows SET line = '[]' WHERE seq = 0",
        "DELETE FROM rows WHERE seq = 1",
        "DELETE FROM rows WHERE seq = 0",
        "UPDATE rows SET seq = CASE seq WHEN 1 THEN 12 ELSE seq END",
    ])
    def test_an_edited_row_is_noticed(self, three: Journals, sql: str) -> None:
        edit(three, sql)
        with pytest.raises(JournalChanged) as caught:
            three.read(RUN)
        assert caught.value.exit_code == 6 and RUN in str(caught.value)
        with pytest.raises(JournalChanged), another(three).lock(RUN):
            pass
        assert not three.in_use(RUN)

    def test_a_file_that_is_no_database(self, tmp_path: Path) -> None:
        (tmp_path / "journal.sqlite").write_text("not a database, certainly not one of SQLite's")
        with pytest.raises(JournalTrouble) as caught:
            Journals(tmp_path, StoppedClock())
        assert isinstance(caught.value, SealtuneError)


class TestProcesses:
    def test_killed_while_appending(self, tmp_path: Path) -> None:
        """Whatever was said to be written is there, whole and chained, and the run can be locked again."""
        state = tmp_path / "state"
        for round_ in range(3):
            opening = "journals.create('r')" if round_ == 0 else "journals.lock('r')"
            writer = child(state, f"""
                with {opening} as journal:
                    while True:
                        e = journal.append(Deed("run", "note"), Kind.NOTED, {{"pad": "x" * 3000}}, {{"p": 1}})
                        print(e.seq, e.digest(), flush=True)
            """)
            assert writer.stdout
            said = [writer.stdout.readline().split() for _ in range(20)]
            writer.send_signal(signal.SIGKILL)
            said += [line.split() for line in writer.stdout if line.endswith("\n")]
            writer.stdout.close()
            writer.wait()
            rows = Journals(state, StoppedClock()).read(RunId("r"))
            for seq, digest in said:
                assert rows[int(seq)].digest() == digest
            assert len(rows) - int(said[-1][0]) in (1, 2)
        with Journals(state, StoppedClock()).lock(RunId("r")) as journal:
            journal.append(Deed("run", "note"), Kind.NOTED)

    def test_many_processes_one_file(self, tmp_path: Path) -> None:
        """Started together on a folder that does not exist yet: each run has its own whole chain."""
        state = tmp_path / "state"
        writers = [child(state, f"""
            with journals.create('r{n}') as journal:
                for i in range(25):
                    journal.append(Deed("run", "note"), Kind.NOTED, i)
            """) for n in range(4)]
        for writer in writers:
            assert writer.stdout
            writer.stdout.close()
            assert writer.wait(timeout=60) == 0
        journals = Journals(state, StoppedClock())
        assert sorted(journals.runs()) == ["r0", "r1", "r2", "r3"]
        assert all([e.public for e in journals.read(r)] == list(range(25)) for r in journals.runs())

    def test_looking_never_takes_the_lock_from_a_writer(self, tmp_path: Path) -> None:
        """`in_use` in a loop beside a process that locks and lets go in a loop: never RunLocked."""
        state = tmp_path / "state"
        with Journals(state, StoppedClock()).create(RUN):
            pass
        locker = child(state, f"""
            for _ in range(150):
                with journals.lock({RUN!r}):
                    pass
            """)
        journals = Journals(state, StoppedClock())
        while locker.poll() is None:
            journals.in_use(RUN)
        assert locker.stdout
        locker.stdout.close()
        assert locker.returncode == 0

    def test_a_dead_holder_holds_nothing(self, tmp_path: Path) -> None:
        holder = child(tmp_path, """
            with journals.create('r') as journal:
                print("held", flush=True)
                sys.stdin.read()
                import time; time.sleep(60)
            """)
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        journals = Journals(tmp_path, StoppedClock())
        assert journals.in_use(RunId("r"))
        with pytest.raises(RunLocked, match=str(holder.pid)), journals.lock(RunId("r")):
            pass
        holder.kill()
        holder.wait()
        holder.stdout.close()
        assert not journals.in_use(RunId("r"))


def test_the_file_is_for_its_owner_only(journals: Journals) -> None:
    assert (journals._state.stat().st_mode & 0o777, journals._db.path.stat().st_mode & 0o777) == (0o700, 0o600)
