"""Documents by digest: kept whole, found only unchanged."""
from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.audit.evidence import MOST_BYTES, EvidenceFolder
from orchestrator.audit.files import EvidenceTrouble
from orchestrator.domain.document import sha256
from orchestrator.domain.names import Digest

pytestmark = pytest.mark.evidence


@pytest.fixture
def evidence(tmp_path: Path) -> EvidenceFolder:
    return EvidenceFolder(tmp_path / "evidence")


@pytest.mark.parametrize("document", [b"", b"{}", bytes(range(256)) * 5000])
def test_there_and_back(evidence: EvidenceFolder, tmp_path: Path, document: bytes) -> None:
    digest = evidence.keep(document)
    assert digest == sha256(document) == evidence.keep(document) and evidence.read(digest) == document
    file, = (tmp_path / "evidence").iterdir()
    assert file.name == digest.removeprefix("sha256:") and file.stat().st_mode & 0o777 == 0o600


def test_changed_or_gone(evidence: EvidenceFolder, tmp_path: Path) -> None:
    digest = evidence.keep(b"probes")
    file, = (tmp_path / "evidence").iterdir()
    file.write_bytes(b"other")
    with pytest.raises(EvidenceTrouble, match=digest):
        evidence.read(digest)
    assert evidence.keep(b"probes") == digest and evidence.read(digest) == b"probes"     # written anew
    file.unlink()
    assert evidence.find(digest) is None


@pytest.mark.parametrize("name", ["", "sha256:", "sha256:../../x", "sha256:" + "A" * 64, "md5:" + "0" * 64, "x" * 64])
def test_a_digest_is_never_a_path(evidence: EvidenceFolder, name: str) -> None:
    assert evidence.find(Digest(name)) is None
    with pytest.raises(EvidenceTrouble, match="no evidence"):
        evidence.read(Digest(name))


def test_a_link_is_not_followed(evidence: EvidenceFolder, tmp_path: Path) -> None:
    digest = evidence.keep(b"probes")
    file, = (tmp_path / "evidence").iterdir()
    file.rename(tmp_path / "moved")
    file.symlink_to(tmp_path / "moved")
    with pytest.raises(EvidenceTrouble):
        evidence.read(digest)


def test_too_long(evidence: EvidenceFolder) -> None:
    with pytest.raises(EvidenceTrouble, match="more than"):
        evidence.keep(b"x" * (MOST_BYTES + 1))
