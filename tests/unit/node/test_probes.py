"""What nodes say about themselves: golden machines, honest and not, and outputs made to hurt the reader."""
from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.evidence import Check, Trust
from orchestrator.domain.lease import HardwareClaim
from orchestrator.node.probes import models, rules, smi, system

GOLDEN = Path(__file__).parents[2] / "golden" / "probes"
CLAIM = HardwareClaim("RTX 4090", 1, 24564, ram_mib=64_000, disk_gib=500)
HARMLESS = b"<nvidia_smi_log><gpu id='0'><product_name>RTX 4090</product_name></gpu></nvidia_smi_log>"


def machine(name: str) -> dict[str, tuple[int, bytes]]:
    shown = {path.name: (0, path.read_bytes()) for path in (GOLDEN / name).iterdir()}
    return {probe: shown.get(probe, (127, b"")) for probe in system.NAMES}


def judged(name: str, claim: HardwareClaim | None) -> dict[int, Check]:
    return {check.number: check for check in rules.compare(rules.views(machine(name)), claim)}


def words(name: str, claim: HardwareClaim | None) -> dict[int, str]:
    return {number: check.word for number, check in judged(name, claim).items()}


def test_honest_card_passes_everything() -> None:
    assert set(words("rtx-4090", CLAIM).values()) == {"passed"}
    views = rules.views(machine("rtx-4090"))
    assert rules.trust(views, rules.compare(views, CLAIM)) is Trust.CROSS_CHECKED


def test_fake_card_fails_where_its_stories_differ() -> None:
    failed = {n for n, word in words("fake-4090", CLAIM).items() if word == "failed"}
    assert failed == {6, 7, 8, 10, 11, 12}
    views = rules.views(machine("fake-4090"))
    assert rules.trust(views, rules.compare(views, CLAIM)) is Trust.CLAIMED


def test_slice_of_a_card_is_not_the_card() -> None:
    assert words("mig-slice", HardwareClaim("H100", 1, 81559))[9] == "failed"


def test_another_card_than_offered() -> None:
    checks = judged("rtx-4090", HardwareClaim("RTX 5090", 1, 32607))
    assert checks[4].word == "failed" and "RTX 5090" in checks[4].why
    assert checks[5].word == "failed"
    assert judged("rtx-4090", HardwareClaim("RTX 4090", 2, 24564))[3].why == "1 of 2"


def test_no_gpu_where_one_was_offered_fails() -> None:
    assert judged("no-gpu", CLAIM)[1].word == "failed"


def test_no_gpu_and_nothing_claimed_is_not_applicable() -> None:
    checks = judged("no-gpu", None)
    assert {checks[n].word for n in range(1, 12)} == {"not applicable"}
    assert all(checks[n].why == "no GPU" for n in range(1, 12))
    assert not [c for c in checks.values() if c.word in ("failed", "not checked")]


def test_simulation_passes_only_where_a_simulation_is_offered() -> None:
    assert words("simulated", HardwareClaim("RTX 4090", 1, 24564))[2] == "failed"
    checks = judged("simulated", HardwareClaim("Simulated RTX 4090", 1, 24564))
    assert not [c for c in checks.values() if c.word in ("failed", "not checked")]
    assert checks[6].why == "simulated hardware"
    assert words("rtx-4090", HardwareClaim("Simulated RTX 4090", 1, 24564))[2] == "failed"


def test_what_cannot_be_seen_is_not_a_pass() -> None:
    """A container that hides the driver's files and the bus."""
    shown = {**machine("rtx-4090"), "proc-gpus": (127, b""), "pci": (127, b""), "proc-driver": (1, b"")}
    checks = {c.number: c for c in rules.compare(rules.views(shown), CLAIM)}
    assert {checks[n].word for n in (6, 7, 8)} == {"not checked"}


def test_tool_that_fails_is_a_failed_check() -> None:
    shown = {**machine("rtx-4090"), "nvidia-smi-xml": (9, b"NVIDIA-SMI has failed")}
    checks = {c.number: c for c in rules.compare(rules.views(shown), CLAIM)}
    assert checks[1].word == "failed" and checks[4].word == "not checked"


def test_too_little_memory_or_disk() -> None:
    checks = judged("rtx-4090", HardwareClaim("RTX 4090", 1, 24564, ram_mib=128_000, disk_gib=2000))
    assert (checks[13].word, checks[14].word) == ("failed", "failed")


@pytest.mark.parametrize(("claimed", "shown", "same"), [
    ("RTX 4090", "NVIDIA GeForce RTX 4090", True), ("RTX 4090", "NVIDIA GeForce RTX 4090 D", False),
    ("RTX 3080", "NVIDIA GeForce RTX 3080 Ti", False), ("RTX 3080 Ti", "NVIDIA GeForce RTX 3080 Ti", True),
    ("RTX 6000 Ada", "NVIDIA RTX 6000 Ada Generation", True), ("RTX 6000", "NVIDIA RTX 6000 Ada Generation", False),
    ("A100", "NVIDIA A100-SXM4-80GB", True), ("H100", "NVIDIA H200", False), ("RTX 4090", "", False)])
def test_names(claimed: str, shown: str, same: bool) -> None:
    assert models.same(claimed, shown) is same


def test_simulated_name_and_harmless_document() -> None:
    assert not smi.parse(HARMLESS).simulated
    assert smi.parse(HARMLESS.replace(b"RTX", b"Simulated RTX")).simulated


BOMBS = {
    "billion laughs": b'<!DOCTYPE n [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><n><gpu>&b;</gpu></n>',
    "external entity": b'<!DOCTYPE n [<!ENTITY x SYSTEM "file:///etc/passwd">]><n>&x;</n>',
    "parameter entity": b'<!DOCTYPE n [<!ENTITY % x SYSTEM "http://127.0.0.1/x"> %x;]><n/>',
    "unknown entity": b"<n>&nope;</n>",
    "deep": b"<a>" * 5000 + b"</a>" * 5000,
    "wide": b"<n>" + b"<gpu/>" * 100 + b"</n>",
    "many elements": b"<n><gpu>" + b"<x/>" * 30_000 + b"</gpu></n>",
    "large": b"<n>" + b" " * (3 << 20) + b"</n>",
    "not xml": b"\x00\xff\xfe", "empty": b"", "cut": HARMLESS[:40],
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused(name: str) -> None:
    with pytest.raises(smi.BadOutput):
        smi.parse(BOMBS[name])


def test_long_and_dirty_text_is_cut_and_cleaned() -> None:
    dirty = "\x9b31m\u202e".encode() + b"A" * 100_000
    shown = smi.parse(HARMLESS.replace(b"RTX 4090", dirty)).gpus[0].name
    assert len(shown) <= 120 and "\x9b" not in shown and "\u202e" not in shown


@given(st.binary(max_size=400))
def test_parsers_bear_anything(data: bytes) -> None:
    everything = dict.fromkeys(system.NAMES, (0, data))
    rules.compare(rules.views(everything), CLAIM)
    system.wheels(data)
    system.disk_bytes(data)


def test_what_the_node_says_of_its_python_and_wheels() -> None:
    outputs = machine("rtx-4090")
    assert rules.views(outputs).python == system.Python("3.11", True, True, "uv 0.13.9")
    assert system.wheels(outputs["wheels"][1]) == ("torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl",)
    assert system.wheels(b"../../torch-1.whl\ntorch-x;rm -rf.whl") == ("torch-1.whl",)
