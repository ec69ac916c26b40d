"""Bad input ends a job before anything heavy is imported, with a type and a place and not a word more."""
from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyrage
import pytest

from tests.payload.workshop import Outcome, Workshop, chat

Make = Callable[[], Workshop]
ROWS = [chat("secret question", "secret answer"), chat("other", "one", "held_out")]
STRANGER = str(pyrage.x25519.Identity.generate()).encode()


def prepared(make: Make, base: Path, knobs: dict[str, str] | None = None, **changes: Any) -> Workshop:
    shop = make()
    shop.spec(shop.ship(ROWS), base, knobs or {}, **changes)
    return shop


def refused(outcome: Outcome, kind: str, shop: Workshop) -> None:
    assert outcome.code == 1
    (error,) = outcome.of("error")
    assert error["type"] == kind
    name, _, line = error["where"].partition(":")
    assert name.endswith(".py") and line.isdigit()
    said = json.dumps(outcome.records) + outcome.noise
    for secret in ("secret", str(shop.folder), "AGE-SECRET-KEY"):
        assert secret not in said
    assert not shop.out.exists() or list(shop.out.iterdir()) == []


@pytest.mark.parametrize("word", ["train", "rehearse"])
@pytest.mark.parametrize(("key", "kind"), [
    (STRANGER, "WrongKey"), (b"", "BadKey"), (b"AGE-SECRET-KEY-1XYZ\n", "BadKey"), (b"\xff" * 9000, "BadKey")],
    ids=["another's", "none", "no key", "not text"])
def test_a_wrong_key(workshop: Make, base: Path, word: str, key: bytes, kind: str) -> None:
    shop = prepared(workshop, base)
    began = time.monotonic()
    refused(shop.run(word, base, key=key), kind, shop)
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(("changes", "kind"), [
    ({"data": "sha256:" + "0" * 64}, "DigestMismatch"),
    ({"data": "somewhere"}, "BadSpec"),
    ({"schema": "sealtune/spec/2"}, "BadSpec"),
    ({"train_rows": 2}, "BadRows"),
    ({"train_rows": -1}, "BadSpec"),
    ({"seed": True}, "BadSpec"),
    ({"seal_to": "age1nobody"}, "BadSpec"),
    ({"resume": "sha256:" + "0" * 64}, "BadSpec"),
    ({"extra": 1}, "BadSpec"),
    ({"knobs": [["lora_q", "16"]]}, "UnknownKnob"),
    ({"method": "full"}, "UnknownMethod"),
    ({"base": {"repo": "r", "commit": "0" * 40, "files": [["config.json", "0" * 64]]}}, "BadBase"),
    ({"base": {"repo": "r", "commit": "0" * 40, "files": [["../spec.json", "0" * 64]]}}, "BadBase"),
])
def test_a_spec_that_does_not_hold(workshop: Make, base: Path, changes: dict[str, Any], kind: str) -> None:
    shop = prepared(workshop, base)
    spec = {**json.loads((shop.folder / "spec.json").read_text()), **changes}
    (shop.folder / "spec.json").write_text(json.dumps(spec))
    refused(shop.run("train", base), kind, shop)


@pytest.mark.parametrize("row", [
    {"split": "train", "messages": []},
    {"split": "train", "messages": [{"role": "user", "content": "secret"}]},
    {"split": "train", "messages": [{"role": "assistant", "content": ""}]},
    {"split": "train", "messages": [{"role": "wizard", "content": "secret"}, {"role": "assistant", "content": "a"}]},
    {"split": "train", "text": "secret"},
    {"split": "elsewhere", "messages": [{"role": "assistant", "content": "secret"}]},
    ["secret"],
    "secret",
])
def test_a_row_of_the_wrong_shape(workshop: Make, base: Path, row: Any) -> None:
    shop = workshop()
    good = [row for row in ROWS if row["split"] == "train"]
    counts = shop.ship([*good, {"split": "train", "messages": []}])
    _replace_last_row(shop, row)
    shop.spec(counts, base, {})
    refused(shop.run("train", base), "BadRows", shop)


def test_a_sealed_file_that_was_damaged(workshop: Make, base: Path) -> None:
    shop = workshop()
    counts = shop.ship([chat("secret " * 50_000, "answer")] * 3)
    sealed = bytearray((shop.folder / "dataset.age").read_bytes())
    sealed[-20] ^= 1
    (shop.folder / "dataset.age").write_bytes(sealed)
    shop.spec(counts, base, {})
    refused(shop.run("train", base), "DamagedSeal", shop)


def test_a_result_that_is_too_large(workshop: Make, base: Path) -> None:
    shop = prepared(workshop, base, {"rehearsal_steps": "1"}, engine="rehearsal",
                    limits={"steps": 1, "seconds": 60, "artifact_bytes": 1000, "records": 1000})
    refused(shop.run("rehearse", base), "ArtifactTooLarge", shop)


def _replace_last_row(shop: Workshop, row: Any) -> None:
    import zstandard
    path = shop.folder / "dataset.age"
    lines = zstandard.decompress(pyrage.decrypt(path.read_bytes(), [shop.node])).decode().split("\n")
    lines[-1] = json.dumps(row)
    path.write_bytes(pyrage.encrypt(zstandard.compress("\n".join(lines).encode()), [shop.node.to_public()]))
