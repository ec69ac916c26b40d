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
    _m("anyone-is-a-key", B, "number == b.number && who == b.session;", "number == b.number;"),
    _m("sessions-sign-nothing", E, "|| (_isSession(session, r.renter, r.budget)", "|| (false"),
    _m("old-sessions-sign", E, "|| (_isSession(session, r.renter, r.budget)", "|| (true"),
    _m("sessions-are-strangers", E, "return _isSession(msg.sender, r.renter, r.budget) ? Party.Renter : Party.Anyone;",
       "return Party.Anyone;"),
    _m("wallets-sign-nothing", "Signatures", "if (signer.code.length == 0) return false;", "return false;"),
    _m("long-signatures", "Signatures", "if (signature.length != 65)", "if (signature.length < 65)"),
    _m("a-refusal-signs", "Signatures", "return ok && answer.length", "return answer.length"),
    _m("a-short-answer-signs", "Signatures", "answer.length >= 32 && ", ""),
    _m("any-answer-signs", "Signatures", " && bytes32(answer) == bytes32(ERC1271_MAGIC)", ""),
    _m("quotes-for-all-chains", B, "keccak256(\"1\"), block.chainid,", "keccak256(\"1\"), 31337,"),
    _m("quotes-for-all-escrows", B, "block.chainid, address(this)));", "block.chainid, address(TOKEN)));"),
    _m("one-key-for-all", E, "keccak256(abi.encode(block.chainid, address(this), renter, key))",
       "keccak256(abi.encode(block.chainid, address(this), key))"),
    _m("no-token", P, "if (token_.code.length == 0) revert", "if (false) revert"),
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
    _m("in-any-state", E, "if (r.state() != wanted) revert", "if (r.state() == State.None) revert"),
    _m("over-before-it-began", B, "if (block.timestamp >= terms.expiry) revert",
       "if (block.timestamp > terms.expiry) revert"),
    _m("last-second-of-inspection", E, "bool early = block.timestamp <= r.inspectUntil()",
       "bool early = block.timestamp < r.inspectUntil()"),
    _m("abandoned-when-over", E, "block.timestamp <= r.inspectUntil() && block.timestamp < r.endsAt();",
       "block.timestamp <= r.inspectUntil();"),
    _m("ended-when-over", E, "block.timestamp < r.endsAt() ? Outcome", "block.timestamp <= r.endsAt() ? Outcome"),
    _m("no-show-a-second-early", R, "return block.timestamp > startBy(r) ?", "return block.timestamp >= startBy(r) ?"),
    _m("expired-a-second-late", R, "return block.timestamp < endsAt(r) ?", "return block.timestamp <= endsAt(r) ?"),
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
    _m("too-few-seconds", E, "if (seconds_ < least || seconds_ > most) revert", "if (seconds_ > most) revert"),
    _m("no-seconds", E, "quote.minSeconds == 0 ? 1 : quote.minSeconds", "quote.minSeconds"),
    _m("extended-by-nothing", E, "uint256(r.fundedSeconds) + 1", "r.fundedSeconds"),
    _m("free-rental", E, "        _pull(deposit);", ""),
    _m("free-extension", E, "        _pull(extra);", ""),
    _m("sessions-pull", E, "if (bySession) return _draw(r.renter, extra);", ""),
    _m("provider-not-paid", E, "        _credit(r.provider, paid);", ""),
    _m("fee-not-paid", E, "if (fee != 0) _credit(_feeRecipients[id], fee);", ""),
    _m("renter-not-refunded", E, "        _sendHome(r.renter, id, refund);", ""),
    _m("provider-gets-the-refund", E, "_sendHome(r.renter, id, refund);", "_sendHome(r.provider, id, refund);"),
    _m("session-gets-the-rest", B, "_sendHome(owner, 0, left);", "_sendHome(b.session, 0, left);"),
    _m("caller-is-paid", P, "if (!_push(owner, amount)) revert", "if (!_push(msg.sender, amount)) revert"),
    _m("nothing-is-pushed", P, "if (amount == 0 || _push(owner, amount)) return;", "if (_push(owner, amount)) return;"),
    _m("nothing-is-withdrawn", P, "if (amount == 0) revert", "if (false) revert"),
    _m("sums-overflow", P, " || promised > type(uint120).max", ""),
    _m("abandoned-is-paid", R, "return outcome == IRentalEscrow.Outcome.Ended ||",
       "return outcome >= IRentalEscrow.Outcome.Abandoned ||"),
    # What is written.
    _m("rental-overwritten", E, "if (_records[id].state() != State.None) revert", "if (false) revert"),
    _m("quote-used-again", E, "|= 1 << uint8(uint256(salt));", "|= 0;"),
    _m("spent-quote", E, "if (quoteSpent(quote.provider, quote.salt)) revert QuoteSpent(digest);\n        if (!Signatures",
       "if (!Signatures"),
    _m("quote-cancelled-twice", E, "if (quoteSpent(quote.provider, quote.salt)) revert QuoteSpent(digest);\n\n", ""),
    _m("salts-of-all-providers", E, "return _spentSalts[provider]", "return _spentSalts[address(0)]"),
    _m("words-of-salts-lost", E, "|= 1 << uint8(uint256(salt));", "= 1 << uint8(uint256(salt));"),
    _m("no-budget-closed", B, "if (b.expiry == 0) revert", "if (false) revert"),
    _m("clock-not-started", E, "r.startedAt = uint40(block.timestamp);", "r.startedAt = r.createdAt;"),
    _m("ready-not-written", E, "_documents[id] = readyHash;", ""),
    _m("extension-not-written", E, "r.fundedSeconds = totalSeconds;", ""),
    _m("reason-not-written", E, "r.reason = reason;", ""),
    _m("closing-time-not-written", E, "r.closedAt = uint40(block.timestamp);", "r.closedAt = r.createdAt;"),
    _m("access-not-written", E, "_accessHashes[id] = how.accessHash;", ""),
    _m("budget-not-written", E, "budget: how.budget,", "budget: 0,"),
    _m("inspection-not-written", E, "inspectionSeconds: quote.inspectionSeconds,", "inspectionSeconds: 900,"),
    _m("session-not-written", B, "b.session = terms.session;", ""),
    _m("price-limit-not-written", B, "b.maxPricePerHour = terms.maxPricePerHour;", "b.maxPricePerHour = type(uint96).max;"),
    _m("list-not-written", B, "b.providersHash = terms.providersHash;", ""),
    _m("providers-report-kept", E, "_closeByTime(id, r, by, 0);", "_closeByTime(id, r, by, reportDigest);"),
    _m("strangers-count-as-renters", E, "_closeByTime(id, r, _caller(r), 0);", "_closeByTime(id, r, Party.Renter, 0);"),
    _m("key-of-another", E, "        _openKeys[renter][place] = key;", ""),
    _m("id-of-another", E, "        _openIds[provider][place] = id;", ""),
    _m("silent-credit", P, "        emit Credited(owner, about, amount);", ""),
    _m("silent-extension", E, "        emit RentalExtended(id, totalSeconds, startedAt + totalSeconds, deposit);", ""),
    _m("silent-budget", B, "        emit BudgetClosed(owner, b.number, left);", ""),
    _m("silent-withdrawal", P, "        emit Withdrawn(owner, amount);", ""),
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
    _m("short-payment", P, "if (here < promised || promised", "if (promised"),
    _m("no-guard", P, "if (_entered) revert Reentered();", ""),
    _m("guard-stays-shut", P, "_;\n        _entered = false;", "_;"),
    _m("not-listed-last", E, "if (r.renterPlace != last) {", "if (false) {"),
    _m("providers-list-forgets", E, "if (r.providerPlace != last) {", "if (r.providerPlace > last) {"),
    _m("place-not-moved", E, "_records[rentalId(r.renter, key)].renterPlace = r.renterPlace;", ""),
    _m("providers-place-not-moved", E, "_records[id].providerPlace = r.providerPlace;", ""),
    _m("outcome-not-written", E, "r.closedBy = by;", ""),
    _m("report-not-written", E, "_documents[id] = report;", ""),
    _m("other-half-of-the-curve", "Signatures", "if (uint256(s) > MAX_S) return address(0);", ""),
    _m("zero-signs", "Signatures", "&& signer != address(0)) return true;", ") return true;"),
)
# Tried on every run, each against the one test that is there for it.
NAMED = {
    "incremental-extension": "test_running.py::test_extension_adds_the_difference_of_the_totals",
    "credit-paid-twice": "test_credits.py::test_a_credit_is_paid_once",
    "refund-lost": "test_credits.py::test_a_refund_that_cannot_be_pushed_waits_as_a_credit",
    "no-cap": "test_budgets.py::test_never_more_than_is_left",
    "anyone-ends": "test_closing.py::test_a_stranger_ends_nothing",
}


def compile_mutant(mutant: Mutant, folder: Path) -> bytes:
    """Its creation code. ValueError where the edit does not fit the source exactly once."""
    sources = build.read_sources()
    if sources[mutant.source].count(mutant.before) != 1:
        raise ValueError(f"{mutant.name} does not fit {mutant.source}")
    sources[mutant.source] = sources[mutant.source].replace(mutant.before, mutant.after)
    folder.mkdir(parents=True, exist_ok=True)
    output = build.compile_sources(tools.SOLJSON, sources, folder, warn=False)
    made = build.artefact(output, sources)
    (folder / "RentalEscrow.json").write_text(json.dumps(made), encoding="utf-8")
    return bytes.fromhex(made["bytecode"][2:])


def killer(folder: Path, suite: tuple[str, ...] = SUITE) -> str | None:
    """The first test of `suite` that fails with the artefact in `folder`, None if none does."""
    environment = {**os.environ, "SEALTUNE_TEST_ESCROW": str(folder / "RentalEscrow.json"), "PYTHONDONTWRITEBYTECODE": "1"}
    tests = [f"tests/escrow/{name}" for name in suite]
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
