"""The locks: hashed, without addresses, complete for what the trainer imports, and of one mind."""
from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from tests.payload.environment import LOCKS

TRAINING = ("cpu", "cpu-pypi", "cu13", "cu128")
ALL = (*TRAINING, "rehearsal", "uv")
NEEDED = {"torch", "transformers", "peft", "trl", "bitsandbytes", "accelerate", "datasets", "safetensors", "pyrage",
          "zstandard", "huggingface-hub", "numpy"}


def pins(name: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for package, version in re.findall(r"^([a-z0-9-]+)==([^ ;]+)", (LOCKS / f"{name}.lock").read_text(), re.MULTILINE):
        found.setdefault(package, set()).add(version)
    return found


@pytest.mark.parametrize("name", ALL)
def test_every_line_is_a_pin_with_hashes_and_no_address(name: str) -> None:
    text = (LOCKS / f"{name}.lock").read_text()
    assert "://" not in text and "--index" not in text and "--find-links" not in text
    for entry in re.split(r"\n(?=\S)", text.strip()):
        first, *hashes = [line.rstrip(" \\") for line in entry.splitlines()]
        assert re.match(r"[a-z0-9-]+==[0-9][^ ;]*( ; .+)?$", first), first
        assert hashes and all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}", line) for line in hashes), first


@pytest.mark.parametrize("name", TRAINING)
def test_a_training_lock_holds_what_the_trainer_imports(name: str) -> None:
    assert set(pins(name)) >= NEEDED
    assert "kernels" not in pins(name), "it would fetch and run code of a hub at import"


def test_the_locks_agree_on_all_but_torch() -> None:
    for package in NEEDED - {"torch", "numpy"}:
        assert len({version for name in TRAINING for version in pins(name)[package]}) == 1, package
    assert pins("rehearsal")["pyrage"] == pins("cpu")["pyrage"]
    assert [sorted(pins(name)["torch"]) for name in TRAINING] == [["2.13.0+cpu"], ["2.13.0"], ["2.15.0"], ["2.10.0"]]
    assert pins("uv") == {"uv": {"0.13.9"}}


def test_every_lock_is_made_by_the_script() -> None:
    spec = importlib.util.spec_from_file_location("compile_locks", LOCKS / "compile.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert set(module.LOCKS) == set(ALL) == {Path(path).stem for path in LOCKS.glob("*.lock")}
    assert all((LOCKS / f"{name}.in").is_file() for name in ALL)
