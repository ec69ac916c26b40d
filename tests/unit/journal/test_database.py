"""The file itself: how several connections and several processes share it."""
from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.domain.document import canonical
from orchestrator.domain.event import VERSION, Deed, Kind
from orchestrator.domain.names import RunId
from orchestrator.journal.database import LAYOUT, Database, JournalTrouble
from orchestrator.journal.journals import Journals
from tests.fakes.clock import StoppedClock

pytestmark = pytest.mark.noleak
INSERT = "INSERT INTO rows (run, seq, line, private, salt) VALUES (?, ?, '', '', '')"
LOOK = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); print(db.execute('SELECT count(*) FROM rows').fetchone()[0])"


def look(state: Path) -> int:
    """Another process opens the file, reads and closes it, as `sealtune status` does while a run goes on."""
    return int(subprocess.check_output([sys.executable, "-c", LOOK, str(state / "journal.sqlite")], text=True))


def test_a_look_from_outside_leaves_the_log_in_place_whatever_else_is_open_here(tmp_path: Path) -> None:
    first = Database(tmp_path)
    with first.writing() as db:
        db.execute(INSERT, ("a", 0))
    second = Database(tmp_path)          # must not drop the first one's locks on the file
    assert look(tmp_path) == 1
    assert (tmp_path / "journal.sqlite-wal").exists(), "the reader believed that nobody else had the file open"
    with first.writing() as db:
        db.execute(INSERT, ("a", 1))
    assert look(tmp_path) == 2
    assert second.ask("SELECT count(*) FROM rows") == [(2,)]
    first.close()
    second.close()


def test_the_file_is_the_owners_alone_and_no_link_is_followed(tmp_path: Path) -> None:
    Database(tmp_path).close()
    assert (tmp_path / "journal.sqlite").stat().st_mode & 0o777 == 0o600
    other = tmp_path / "other"
    other.mkdir()
    (other / "journal.sqlite").symlink_to(tmp_path / "journal.sqlite")
    with pytest.raises(JournalTrouble, match="symbolic link"):
        Database(other)


def test_a_newer_sealtunes_journal_is_not_written_to(tmp_path: Path) -> None:
    """Neither its file nor its rows are taken for changed ones: they are left alone, and it is said whose they are."""
    journals = Journals(tmp_path, StoppedClock())
    with journals.create(RunId("r")) as journal:
        journal.append(Deed("run", "check"), Kind.INTENDED)
    line = canonical({**json.loads(journals.read(RunId("r"))[0].line()), "v": VERSION + 1, "seq": 1}).decode()
    journals.close()
    with sqlite3.connect(tmp_path / "journal.sqlite") as db:
        db.execute("INSERT INTO rows (run, seq, line, private, salt) VALUES ('r', 1, ?, 'null', '')", (line,))
    db.close()
    again = Journals(tmp_path, StoppedClock())
    with pytest.raises(JournalTrouble, match="row 1 was written by a newer sealtune"):
        again.read(RunId("r"))
    again.close()
    with sqlite3.connect(tmp_path / "journal.sqlite") as db:
        db.execute(f"PRAGMA user_version = {LAYOUT + 1}")
    db.close()
    with pytest.raises(JournalTrouble, match="is of a newer sealtune"):
        Database(tmp_path)
