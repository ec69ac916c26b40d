"""Mistakes that the tests must notice: each is one edit of one source, and each must make some test fail.

`python -m tests.escrow.mutants [NAME ...]` tries them and prints which test killed which. A mutant is compiled with the
artefact's own settings, put in the artefact's place by an environment variable, and shown to the unit tests first, then
to the state machine.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from orchestrator.chain.contracts import build

from . import tools

ROOT = Path(__file__).resolve().parents[2]
SUITE = ("test_create.py", "test_running.py", "test_closing.py", "test_credits.py", "test_views.py", "test_budgets.py",
         "test_invariants.py")


@dataclass(frozen=True)
class Mutant:
    name: str
    source: str
    before: str
    after: str


def _m(name: str, source: str, before: str, after: str) -> Mutant:
    return Mutant(name, f"{source}.sol", before, after)


E, R, B, P = "RentalEscrow", "Records", "Budgets", "Purse"
MUTANTS = (
    # Who may.
    _m("anyone-creates", E, "if (msg.sender != quote.renter) revert", "if (false) revert"),
    _m("anyone-activates", E, "if (msg.sender != r.provider) revert", "if (false) revert"),
    _m("anyone-cancels-quotes", E, "if (msg.sender != quote.provider) revert", "if (false) revert"),
    _m("anyone-extends", E, "if (bySession && !_isSession(msg.sender, r.renter, r.budget)) revert", "if (false) revert"),
    _m("anyone-cancels", E, "if (!noShow && by == Party.Anyone) revert", "if (false) revert"),
    _m("anyone-rejects", E, "if (_caller(r) != Party.Renter) revert", "if (false) revert"),
    _m("anyone-ends", E, "if (by == Party.Anyone) revert NotAllowed(msg.sender);\n\n        bool", "bool"),
    _m("anyone-signs-the-end", E, "if (!signed) revert", "if (false) revert"),
    _m("anyone-signs-quotes", E, "if (!Signatures.signedBy(quote.provider, digest, signature)) revert", "if (false) revert"),
    _m("anyone-is-the-session", B, "if (msg.sender != b.session) revert", "if (false) revert"),
    _m("anyone-closes-budgets", B, "if (!over && msg.sender != owner && msg.sender != b.session) revert",
       "if (false) revert"),
    _m("old-sessions-act", B, "number != 0 && number == b.number && who", "number != 0 && who"),
    _m("zero-is-a-session", B, "number != 0 && number == b.number && who", "number == b.number && who"),
    _m("session-acts-on-all", B, "number != 0 && number == b.number && who", "number <= b.number && who"),
    # When.
    _m("late-quote", E, "if (block.timestamp > quote.validUntil)", "if (block.timestamp >= quote.validUntil)"),
    _m("late-start", E, "if (block.timestamp > r.startBy()) revert", "if (block.timestamp >= r.startBy()) revert"),
    _m("late-extension", E, "if (block.timestamp >= endsAt) revert", "if (block.timestamp > endsAt) revert"),
    _m("early-no-show", E, "bool noShow = block.timestamp > r.startBy();", "bool noShow = block.timestamp >= r.startBy();"),
    _m("late-rejection", E, "if (block.timestamp > r.inspectUntil()) revert",
       "if (block.timestamp >= r.inspectUntil()) revert"),
    _m("early-settlement", E, "if (block.timestamp < r.endsAt()) revert", "if (block.timestamp + 1 < r.endsAt()) revert"),
    _m("provider-outruns", E, "block.timestamp <= r.inspectUntil() && block.timestamp < r.endsAt();", "false;"),
    _m("late-spending", B, "if (block.timestamp >= b.expiry) revert", "if (block.timestamp > b.expiry) revert"),
    _m("early-closing", B, "bool over = block.timestamp >= b.expiry;", "bool over = block.timestamp + 1 >= b.expiry;"),
    # How much.
    _m("deposit-rounds-down", R, "(pricePerHour * seconds_ + HOUR - 1) / HOUR", "(pricePerHour * seconds_) / HOUR"),
    _m("owed-rounds-up", R, "- r.startedAt) / HOUR)", "- r.startedAt) / HOUR + 1)"),
    _m("meter-runs-on", R, "((time < end ? time : end) - r.startedAt)", "(time - r.startedAt)"),
    _m("fee-on-top", R, "paid = owed - fee;", "paid = owed;"),
    _m("fee-rounds-up", R, "fee = uint120(uint256(owed) * r.feeBps / BPS);",
       "fee = uint120((uint256(owed) * r.feeBps + BPS - 1) / BPS);"),
    _m("refund-of-all", R, "refund = deposit(r) - owed;", "refund = deposit(r);"),
    _m("cancelled-is-paid", R, "return isPaid(r.outcome) ? _owedAt(r, r.closedAt) : 0;", "return _owedAt(r, r.closedAt);"),
    _m("incremental-extension", E, "uint120 extra = deposit - r.deposit();",
       "uint120 extra = Records.priceAhead(r.pricePerHour, totalSeconds - r.fundedSeconds);"),
    _m("no-maximum-deposit", E, "if (deposit > how.maxDeposit) revert", "if (false) revert"),
    _m("no-maximum-extra", E, "if (extra > maxExtra) revert", "if (false) revert"),
    _m("no-maximum-price", B, "if (pricePerHour > b.maxPricePerHour) revert", "if (false) revert"),
    _m("no-cap", B, "if (amount > b.left) revert AboveMaximum(amount, b.left);\n        b.left -= uint96(amount);",
       "b.left -= uint96(amount > b.left ? b.left : amount);"),
    _m("fee-without-cap", E, "quote.feeBps > MAX_FEE_BPS || nobody", "nobody"),
    _m("fee-for-nobody", E, "quote.feeBps > MAX_FEE_BPS || nobody", "quote.feeBps > MAX_FEE_BPS"),
    _m("any-list", B, "if (b.providersHash != 0 && b.providersHash != keccak256(abi.encode(providers))) revert",
       "if (false) revert"),
    _m("any-provider", B, "if (b.providersHash != 0 && !_contains(providers, provider)) revert", "if (false) revert"),
    _m("any-seconds", E, "if (seconds_ < least || seconds_ > most) revert", "if (seconds_ < least) revert"),
    # What is written.
    _m("rental-overwritten", E, "if (_records[id].state() != State.None) revert", "if (false) revert"),
    _m("quote-used-again", E, "|= 1 << uint8(uint256(salt));", "|= 0;"),
    _m("cancelled-quote-used", E, "_spend(quote.provider, quote.salt);\n        emit QuoteCancelled", "emit QuoteCancelled"),
    _m("held-not-raised", E, "_sums.held += deposit;", ""),
    _m("held-not-raised-on-extension", E, "_sums.held += extra;", ""),
    _m("held-not-lowered", E, "_sums.held -= paid + fee + refund;", ""),
    _m("budget-not-held", B, "_sums.held += terms.cap;", ""),
    _m("budget-still-held", B, "_sums.held -= left;", ""),
    _m("budget-closed-twice", B, "b.left = 0;\n", ""),
    _m("budget-never-closed", B, "b.expiry = 0;\n", ""),
    _m("budget-not-spent", B, "b.left -= uint96(amount);", ""),
    _m("second-budget", B, "if (b.expiry != 0) revert", "if (false) revert"),
    _m("number-stays", B, "b.number += 1;", "b.number = 1;"),
    _m("credit-paid-twice", P, "_accounts[owner].credit = 0;", ""),
    _m("credits-not-lowered", P, "_sums.credits -= uint120(amount);", ""),
    _m("credit-not-booked", P, "_accounts[owner].credit += amount;", "_accounts[owner].credit = amount;"),
    _m("credits-not-raised", P, "_sums.credits += amount;", ""),
    _m("refund-lost", P, "_credit(owner, amount);\n        emit", "emit"),
    _m("failed-push-is-fine", P, "return ok && uint256(bytes32(answer)) == 1;", "return ok || !ok;"),
    _m("any-answer-is-yes", P, "return ok && uint256(bytes32(answer)) == 1;", "return ok;"),
    _m("withdrawal-lost", P, "if (!_push(owner, amount)) revert TransferFailed(owner, amount);", "_push(owner, amount);"),
    _m("payment-not-asked", P, "if (!TOKEN.transferFrom(msg.sender, address(this), amount)) revert",
       "TOKEN.transferFrom(msg.sender, address(this), amount); if (false) revert"),
    _m("short-payment", P, "if (here < promised) revert", "if (false) revert"),
    _m("no-guard", P, "if (_entered) revert Reentered();", ""),
    _m("guard-stays-shut", P, "_;\n        _entered = false;", "_;"),
    _m("not-listed-last", E, "if (r.renterPlace != last) {", "if (false) {"),
    _m("providers-list-forgets", E, "if (r.providerPlace != last) {", "if (false) {"),
    _m("place-not-moved", E, "_records[rentalId(r.renter, key)].renterPlace = r.renterPlace;", ""),
    _m("providers-place-not-moved", E, "_records[id].providerPlace = r.providerPlace;", ""),
    _m("outcome-not-written", E, "r.closedBy = by;", ""),
    _m("report-not-written", E, "_documents[id] = report;", ""),
    _m("other-half-of-the-curve", "Signatures", "if (uint256(s) > MAX_S) return address(0);", ""),
    _m("zero-signs", "Signatures", "&& signer != address(0)) return true;", ") return true;"),
)
NAMED = ("incremental-extension", "credit-paid-twice", "refund-lost", "no-cap", "anyone-ends")


def compile_mutant(mutant: Mutant, folder: Path) -> bytes:
    """Its creation code. ValueError where the edit does not fit the source exactly once."""
    sources = {name: (build.HERE / name).read_text(encoding="utf-8") for name in build.SOURCES}
    if sources[mutant.source].count(mutant.before) != 1:
        raise ValueError(f"{mutant.name} does not fit {mutant.source}")
    sources[mutant.source] = sources[mutant.source].replace(mutant.before, mutant.after)
    folder.mkdir(parents=True, exist_ok=True)
    output = build.compile_sources(tools.SOLJSON, sources, folder, warn=False)
    made = build.artefact(output, sources)
    (folder / "RentalEscrow.json").write_text(json.dumps(made), encoding="utf-8")
    return bytes.fromhex(made["bytecode"][2:])


def killer(folder: Path) -> str | None:
    """The first test that fails with the artefact in `folder`, None if none does."""
    environment = {**os.environ, "SEALTUNE_TEST_ESCROW": str(folder / "RentalEscrow.json"), "PYTHONDONTWRITEBYTECODE": "1"}
    tests = [f"tests/escrow/{name}" for name in SUITE]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not full", "-p", "no:cacheprovider", "--tb=line", *tests]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode == 0:
        return None
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if done.returncode != 1 or not failed:
        raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])
    return failed[0].split(" ")[1]


def main(names: list[str]) -> int:
    survivors = []
    for mutant in (m for m in MUTANTS if not names or m.name in names):
        with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
            compile_mutant(mutant, Path(folder))
            by = killer(Path(folder))
        print(f"{mutant.name}: {by or 'SURVIVED'}", flush=True)
        survivors += [] if by else [mutant.name]
    print(f"{len(survivors)} survived {survivors}")
    return 1 if survivors else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
