"""What everything costs, on real transactions, against the committed figures, to the unit. A change must be looked at.

A life is measured in the dearest setting: nobody else has money in the escrow, so its balance comes from zero and goes
back there. Renter and provider have traded before; the quote has no fee, which would add a slot.

Beside two published escrows. Ours are whole transactions (21,000 and calldata included) with Circle's token behind its
proxy; theirs are measured inside a test, so without the 21,000, and with the tokens of those tests. Neither has a meter, a
second signature, or lists from which a lost laptop finds its rentals again.

                        here                     Sablier Lockup Linear    commerce-payments
    open                215,559 (171,805 from    113,680 to 138,071       127,755 authorize, 178,936 charge
                        a budget)
    start the clock     55,747                   -                        -
    extend              68,248 (41,900)          -                        -
    close, money back   89,220 (57,569 settled   56,829 cancel            51,952 void, 52,200 reclaim,
                        to 112,453 rejected)                              64,337 refund
    paid out            55,647                   19,002 to 29,701         98,688 capture
    the whole life      539,846 with approve     -                        -
                        557,029 with one signature (EIP-3009) and a session key

Sablier: docs.sablier.com/contracts/v2/gas-benchmarks. commerce-payments: .gas-snapshot-benchmarks of
github.com/base/commerce-payments at 0876bef4ed6f965b930453d919fd7526a6bebb45.
"""
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from eth_utils.crypto import keccak

from .nodechain import node
from .world import OTHER_PROVIDER, PROVIDER, RENTER, SESSION, STRANGER, World, list_hash

pytestmark = pytest.mark.money
GOLDEN = Path(__file__).with_name("gas.json")
ON_APPROVAL, BY_SIGNATURE = 540_000, 580_000
LISTED = (OTHER_PROVIDER.address, PROVIDER.address)


class Meter:
    def __init__(self, world: World) -> None:
        self.world, self.read = world, dict[str, int]()

    def __call__(self, name: str, *ignored: Any) -> None:
        """The last transaction was this."""
        self.read[name] = self.world.chain.gas_used

    def send(self, name: str, who: str, function: str, *arguments: Any) -> None:
        self(name, self.world.escrow.send(who, function, *arguments))


def word(text: str) -> bytes:
    return bytes(keccak(text=text))


def by_allowance(world: World, turn: int) -> dict[str, int]:
    meter = Meter(world)
    meter("approve", world.token.send(RENTER.address, "approve", world.escrow.address, 800_000))
    quote = world.quote(offerId=word("offer"), specHash=word("spec"), salt=word("salts")[:31] + bytes([turn]))
    id = world.create(quote, key=word(f"key {turn}"), access=word("access"))
    meter("create")
    meter.send("activate", PROVIDER.address, "activate", id, word("ready"))
    world.after(1800)
    meter.send("extendTo", RENTER.address, "extendTo", id, 7200, 400_000)
    world.after(3000)
    meter.send("end", RENTER.address, "end", id, word("report"))
    meter.send("withdraw", PROVIDER.address, "withdraw")
    return meter.read


def by_budget(world: World, turn: int) -> dict[str, int]:
    meter = Meter(world)
    meter("openBudget", world.open_budget(world.terms(providersHash=list_hash(LISTED), salt=word(f"budget {turn}"))))
    quote = world.quote(offerId=word("offer"), specHash=word("spec"), salt=word("salts")[:31] + bytes([turn]))
    id = world.create_by(SESSION, quote, key=word(f"key {turn}"), providers=LISTED)
    meter("createFromBudget")
    meter.send("activate", PROVIDER.address, "activate", id, word("ready"))
    world.after(1800)
    meter.send("extendTo", SESSION.address, "extendTo", id, 7200, 400_000)
    world.after(3000)
    meter.send("end", SESSION.address, "end", id, word("report"))
    meter.send("withdraw", PROVIDER.address, "withdraw")
    return meter.read


def others(world: World) -> dict[str, int]:
    """What is not part of a usual life."""
    meter, renter, provider = Meter(world), RENTER.address, PROVIDER.address
    world.token.send(renter, "approve", world.escrow.address, 10**9)
    ids = [world.create(key=word(f"other {n}")) for n in range(5)]
    for id in ids[1:]:
        world.escrow.send(provider, "activate", id, word("ready"))
    meter.send("cancel", renter, "cancel", ids[0])
    meter.send("reject", renter, "reject", ids[1], 1, word("evidence"))
    meter.send("cancelQuote", provider, "cancelQuote", world.quote().tuple())
    world.after(1000)
    signed = RENTER.sign(world.end_digest(ids[2], word("report")))
    meter.send("endSigned", STRANGER.address, "endSigned", ids[2], word("report"), signed)
    meter.send("end by the provider", provider, "end", ids[3], word("report"))
    world.after(4000)
    meter.send("settle", STRANGER.address, "settle", ids[4])
    meter.send("withdrawFor", STRANGER.address, "withdrawFor", provider)
    meter.send("closeBudget", SESSION.address, "closeBudget", renter)
    return meter.read


def test_every_function_costs_what_is_written_down(tmp_path: Path) -> None:
    with node(tmp_path) as chain:
        world = World(chain=chain)
        world.token.send(RENTER.address, "transfer", PROVIDER.address, 1)
        found: dict[str, dict[str, int]] = {"first life": by_allowance(world, 1), "life": by_allowance(world, 2)}
        found["first life on a budget"] = by_budget(world, 3)
        world.escrow.send(SESSION.address, "closeBudget", RENTER.address)
        found["life on a budget"] = by_budget(world, 4)
        found["others"] = others(world)
    for name, most in (("life", ON_APPROVAL), ("life on a budget", BY_SIGNATURE)):
        total = sum(found[name].values())
        assert total <= most
        assert f"{total:,}" in str(__doc__)
    if os.environ.get("SEALTUNE_WRITE_GAS"):
        GOLDEN.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    assert found == json.loads(GOLDEN.read_text(encoding="utf-8"))
