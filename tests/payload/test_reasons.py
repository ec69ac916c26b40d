"""What installers print, as one reason for a person: what failed, and their last lines without places or logins."""
from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remote_payload.reasons import MOST, newest_name, reason

UV_OFFLINE = """  × No solution found when resolving dependencies:
  ╰─▶ Because torch was not found in the provided package locations and you
      require torch==2.13.0, we can conclude that your requirements are
      unsatisfiable.

      hint: Packages were unavailable because index lookups were disabled and
      no additional package locations were provided (try: `--find-links <uri>`)
"""
UV_NETWORK = """error: Failed to fetch: `https://me:pass-word@pypi.org/simple/torch/`
  Caused by: Request failed after 3 retries
  Caused by: error sending request for url (https://me:pass-word@pypi.org/simple/torch/)
  Caused by: client error (Connect)
  Caused by: dns error
  Caused by: failed to lookup address information: Temporary failure in name resolution
"""
UV_CERTIFICATE = """error: Failed to fetch: `https://pypi.corp.example/simple/torch/`
  Caused by: error sending request for url (https://pypi.corp.example/simple/torch/)
  Caused by: invalid peer certificate: UnknownIssuer
"""
PIP_NETWORK = """WARNING: Retrying (Retry(total=0)) after connection broken by \
'NewConnectionError('<HTTPSConnection(host='pypi.org', port=443): \
Failed to establish a new connection: [Errno 101] Network is unreachable')': /simple/torch/
ERROR: Could not find a version that satisfies the requirement torch==2.13.0 (from versions: none)
ERROR: No matching distribution found for torch==2.13.0
"""
PIP_PROXY = """WARNING: Retrying after connection broken by 'ProxyError('Cannot connect to proxy.', \
OSError('Tunnel connection failed: 407 Proxy Authentication Required'))': /simple/torch/
ERROR: No matching distribution found for torch==2.13.0
"""
PIP_FULL = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device: '/home/me/x'\n"
UV_PYTHON = "error: No interpreter found for Python >=3.11 in managed installations or search path\n"
HASH = "error: Hash mismatch for `torch==2.13.0`\n\nExpected:\n  sha256:aa\n\nComputed:\n  sha256:bb\n"
UNREACHED = "no package index can be reached from there: "


@pytest.mark.parametrize(("printed", "said", "word"), [
    (UV_OFFLINE, "the package index does not have what the lock names: ", "hint: Packages were unavailable"),
    (UV_NETWORK, UNREACHED, "Temporary failure in name resolution"),
    (UV_CERTIFICATE, "the package index's certificate is not trusted there: ", "(pypi.corp.example)"),
    (PIP_NETWORK, UNREACHED, "host='pypi.org'"),
    (PIP_PROXY, "the package index or the proxy wants a login: ", "No matching distribution"),
    (PIP_FULL, "the disk is full: ", "No space left on device"),
    (UV_PYTHON, "there is no python of at least 3.11: ", "No interpreter found"),
    (HASH, "a package is not what the lock says: ", "sha256:bb"),
    ("Segmentation fault\n", "Segmentation fault", ""), ("\n \n", "no reason given", ""),
], ids=["offline", "network", "certificate", "pip network", "proxy", "full", "python", "hash", "unknown", "silence"])
def test_it_says_what_failed(tmp_path: Path, printed: str, said: str, word: str) -> None:
    (log := tmp_path / "log").write_text(printed)
    told = reason(log)
    assert told.startswith(said) and word in told
    assert "pass-word" not in told and "/" not in told.replace("(a place)", "")
    assert len(told) <= MOST and told.isascii() and told.isprintable()


@given(st.binary(max_size=4000))
def test_whatever_it_prints_is_harmless(tmp_path_factory: pytest.TempPathFactory, printed: bytes) -> None:
    log = tmp_path_factory.getbasetemp() / "any.log"
    log.write_bytes(printed)
    told = reason(log)
    assert told and len(told) <= MOST and told.isascii() and told.isprintable()
    assert newest_name(log).isascii()


def test_a_log_that_is_gone_has_no_reason(tmp_path: Path) -> None:
    assert reason(tmp_path / "none") == "no reason given"


@pytest.mark.parametrize(("line", "name"), [
    ("Downloading torch (172.1MiB)", "torch"), (" Downloaded nvidia-cublas-cu12", "nvidia-cublas-cu12"),
    ("Collecting torch==2.13.0+cpu (from -r lock.txt (line 3))", "torch"),
    ("  Downloading torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl (180 MB)", "torch"), ("Resolved 46 packages", "")])
def test_it_knows_what_is_being_installed(tmp_path: Path, line: str, name: str) -> None:
    (log := tmp_path / "log").write_text(f"Resolved 46 packages in 1ms\n{line}\n")
    assert newest_name(log) == name
