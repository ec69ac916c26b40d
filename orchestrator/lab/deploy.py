"""The lab's money: three throwaway keys, Circle's real token behind its proxy, the escrow, and what the renter owns.

    deploy(url, folder)    put what is missing on the lab's chain; again: the same, nothing moves

Only ever talks to chain id 31337. The keys are made here, mean nothing anywhere else, and lie in `folder/keys`.
"""
from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..chain import contracts, wallet
from ..chain.rpc import Receipt, Rpc
from ..chain.wallet import Wallet
from ..errors import Refused
from . import chain

NAMES = ("deployer", "renter", "provider")
GAS_WEI = 100 * 10**18
RENTER_UNITS = 1_000 * 10**6             # 1000 USDC
_PROXY_ADMIN = "0x" + "00" * 18 + "dEaD"   # nobody: the lab's token is never upgraded


@dataclass(frozen=True, slots=True)
class LabMoney:
    """Where things are. The keys are paths of 0600 files for `wallet.load_key`."""

    chain_id: int
    escrow: str
    token: str
    renter_key: str
    provider_key: str


def deploy(url: str, folder: Path) -> LabMoney:
    """An escrow of an older version is left behind for a new one. Refused where the chain is not a lab's."""
    rpc = Rpc(url)
    if rpc.chain_id() != chain.CHAIN_ID:
        raise Refused(f"chain {rpc.chain_id()} is no lab", hint="start one with sealtune lab")
    keys = {name: folder / "keys" / f"{name}.key" for name in NAMES}
    wallets = {name: wallet.lab_key(path) for name, path in keys.items()}
    known, escrow = folder / "money.json", contracts.load("RentalEscrow")
    money = _known(known)
    if money is None or not rpc.code(money.token):
        token = _money(url, rpc, wallets)
        money = LabMoney(chain.CHAIN_ID, "", token, str(keys["renter"]), str(keys["provider"]))
    if not (money.escrow and escrow.is_deployed_as(rpc.code(money.escrow))):
        money = replace(money, escrow=_create(url, rpc, wallets["deployer"], escrow.bytecode + _word(money.token)))
        known.write_text(json.dumps(asdict(money), indent=1) + "\n", encoding="utf-8")
    for one in wallets.values():
        _give_gas(url, rpc, one.address)
    return money


def mint(url: str, folder: Path, to: str, units: int) -> None:
    """More of the lab's USDC for an account. NothingMade if the token refuses."""
    money = _known(folder / "money.json")
    if money is None:
        raise Refused("this lab has no money yet", hint="start it with sealtune lab")
    rpc, minter = Rpc(url), wallet.load_key(folder / "keys" / "deployer.key")
    token = rpc.contract(money.token, contracts.usdc().token_abi)
    send(rpc, minter, money.token, token.encode("mint", _sum(to), units))


def give(url: str, folder: Path, to: str, units: int, payer: str = "") -> None:
    """Play money for an account, and gas for it, or for the one that pays it. Refused where this machine has no lab, or the
    chain is none."""
    rpc = Rpc(url)
    if rpc.chain_id() != chain.CHAIN_ID:
        raise Refused(f"chain {rpc.chain_id()} is no lab: nothing can be given there")
    if units:
        mint(url, folder, to, units)
    _give_gas(url, rpc, payer or to)


def send(rpc: Rpc, sender: Wallet, to: str | None, data: bytes) -> Receipt:
    """One transaction of a lab key, mined. Not for money that matters: a crash here may send twice."""
    base, _ = rpc.tips(1)
    gas = 8_000_000 if to is None else rpc.gas_for(sender.address, to, data) * 5 // 4
    fields: dict[str, Any] = {"chainId": chain.CHAIN_ID, "nonce": rpc.nonce(sender.address), "gas": gas, "value": 0,
                              "maxFeePerGas": 2 * base + 10**9, "maxPriorityFeePerGas": 10**9, "data": data}
    raw, hash = sender.sign_transaction(fields if to is None else {**fields, "to": _sum(to)})
    rpc.broadcast(raw)
    deadline = time.monotonic() + 10
    while (receipt := rpc.receipt(hash)) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    if receipt is None or not receipt.ok:
        raise Refused(f"the lab's chain did not take transaction {hash}")
    return receipt


# ---- once ---------------------------------------------------------------------------------------------------


def _money(url: str, rpc: Rpc, wallets: dict[str, Wallet]) -> str:
    """A token, and what the renter owns of it."""
    _give_gas(url, rpc, wallets["deployer"].address)
    token = _deploy_token(url, rpc, wallets["deployer"])
    _fund(rpc, wallets["deployer"], token, wallets["renter"].address)
    return token


def _deploy_token(url: str, rpc: Rpc, deployer: Wallet) -> str:
    """As on a real chain: the proxy's admin is another account, since an admin cannot use the token through it."""
    usdc = contracts.usdc()
    checker = _create(url, rpc, deployer, usdc.checker.bytecode)
    implementation = _create(url, rpc, deployer, usdc.implementation(checker))
    address = _create(url, rpc, deployer, usdc.proxy.bytecode + _word(implementation))
    proxy = rpc.contract(address, usdc.proxy.abi)
    send(rpc, deployer, address, proxy.encode("changeAdmin", _sum(_PROXY_ADMIN)))
    token, me = rpc.contract(address, usdc.token_abi), deployer.address
    steps: Sequence[tuple[str, Sequence[Any]]] = (
        ("initialize", ("USD Coin", "USDC", "USD", 6, me, me, me, me)),
        ("initializeV2", ("USD Coin",)),
        ("initializeV2_1", (me,)),
        ("initializeV2_2", ([], "USDC")),
        ("configureMinter", (me, 2**255 - 1)),
    )
    for name, arguments in steps:
        send(rpc, deployer, address, token.encode(name, *arguments))
    return address


def _fund(rpc: Rpc, minter: Wallet, token: str, to: str) -> None:
    usdc = rpc.contract(token, contracts.usdc().token_abi)
    send(rpc, minter, token, usdc.encode("mint", _sum(to), RENTER_UNITS))


def _create(url: str, rpc: Rpc, deployer: Wallet, code: bytes) -> str:
    receipt = send(rpc, deployer, None, code)
    return _sum(chain.call(url, "eth_getTransactionReceipt", receipt.hash)["contractAddress"])


def _give_gas(url: str, rpc: Rpc, address: str) -> None:
    if rpc.balance(address) < GAS_WEI // 10:
        chain.call(url, "anvil_setBalance", address, hex(GAS_WEI))


def _known(path: Path) -> LabMoney | None:
    try:
        return LabMoney(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _word(address: str) -> bytes:
    return bytes.fromhex(address.removeprefix("0x").rjust(64, "0"))


def _sum(address: str) -> str:
    from eth_utils.address import to_checksum_address

    return str(to_checksum_address(address))
