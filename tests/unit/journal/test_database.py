"""The file itself: how several connections and several processes share it."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.journal.database import Database, JournalTrouble

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
