"""Circle's token behind its proxy, the escrow, and the people: what every test of the escrow starts from."""
from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from eth_abi.abi import encode
from eth_account import Account
from eth_keys.datatypes import PrivateKey
from eth_utils.crypto import keccak

from orchestrator.chain.contracts import Artefact, load, usdc

from .chain import CHAIN_ID, Chain, Contract, Reverted

ZERO = "0x" + "00" * 20
NOTHING = bytes(32)
PURSE = 1 << 200                         # enough for the dearest quote that fits the types
UNLIMITED = (1 << 256) - 1
QUOTE_TYPE = (
    "Quote(address provider,address renter,bytes32 offerId,bytes32 specHash,uint96 pricePerHour,uint16 feeBps,"
    "address feeRecipient,uint32 minSeconds,uint32 maxSeconds,uint32 startWindow,uint32 inspectionSeconds,"
    "uint64 validUntil,bytes32 salt)"
)
_FIELDS = [field.rsplit(" ", 1) for field in QUOTE_TYPE[6:-1].split(",")]
QUOTE_TUPLE = "(" + ",".join(kind for kind, _ in _FIELDS) + ")"


@dataclass(frozen=True)
class Quote:
    provider: str
    renter: str
    offerId: bytes = b"\x0f" * 32
    specHash: bytes = b"\x5e" * 32
    pricePerHour: int = 400_000
    feeBps: int = 0
    feeRecipient: str = ZERO
    minSeconds: int = 60
    maxSeconds: int = 36_000
    startWindow: int = 600
    inspectionSeconds: int = 900
    validUntil: int = 0
    salt: bytes = NOTHING

    def tuple(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for _, name in _FIELDS)

    def but(self, **changes: Any) -> Quote:
        return replace(self, **changes)


BUDGET_TYPE = (
    "Budget(address owner,address session,uint96 cap,uint96 maxPricePerHour,uint40 expiry,bytes32 providersHash,"
    "bytes32 salt)"
)
_TERMS = [field.rsplit(" ", 1) for field in BUDGET_TYPE[7:-1].split(",")]
_RECEIVE_TYPE = (
    "ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
)


@dataclass(frozen=True)
class Terms:
    """Of a budget."""

    owner: str
    session: str
    cap: int = 2_000_000
    maxPricePerHour: int = 500_000
    expiry: int = 0
    providersHash: bytes = NOTHING
    salt: bytes = NOTHING

    def tuple(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for _, name in _TERMS)

    def but(self, **changes: Any) -> Terms:
        return replace(self, **changes)


@dataclass(frozen=True)
class Person:
    name: str
    key: bytes
    address: str

    def sign(self, digest: bytes) -> bytes:
        signature = PrivateKey(self.key).sign_msg_hash(digest)
        return signature.to_bytes()[:64] + bytes([27 + signature.v])


@cache
def person(name: str) -> Person:
    key = keccak(text=f"sealtune test {name}")
    return Person(name, key, str(Account.from_key(key).address).lower())


RENTER, OTHER_RENTER = person("renter"), person("other renter")
PROVIDER, OTHER_PROVIDER = person("provider"), person("other provider")
FEE_TAKER, STRANGER, SESSION = person("fee taker"), person("stranger"), person("session")
PEOPLE = (RENTER, OTHER_RENTER, PROVIDER, OTHER_PROVIDER, FEE_TAKER, STRANGER, SESSION)
_CIRCLE, _PROXY_ADMIN = person("circle").address, person("proxy admin").address


@cache
def escrow_artefact() -> Artefact:
    """What is committed, or the mutant that mutants.py put in its place."""
    other = os.environ.get("SEALTUNE_TEST_ESCROW")
    if not other:
        return load("RentalEscrow")
    made = json.loads(Path(other).read_text(encoding="utf-8"))
    return Artefact("RentalEscrow", made["abi"], bytes.fromhex(made["bytecode"][2:]), b"", ())


_usdc = cache(usdc)


def digest_of(escrow: str, struct_hash: bytes) -> bytes:
    """EIP-712, written down a second time."""
    domain = keccak(encode(
        ["bytes32", "bytes32", "bytes32", "uint256", "address"],
        [keccak(text="EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
         keccak(text="sealtune RentalEscrow"), keccak(text="1"), CHAIN_ID, escrow]))
    return bytes(keccak(b"\x19\x01" + domain + struct_hash))


def deploy_usdc(chain: Chain) -> Contract:
    """As on Polygon: proxy in front, all initialisers run, every role held by one account."""
    made = _usdc()
    checker = chain.deploy(_CIRCLE, made.checker.bytecode)
    implementation = chain.deploy(_CIRCLE, made.implementation(checker))
    proxy = chain.deploy(_PROXY_ADMIN, made.proxy.bytecode + encode(["address"], [implementation]))
    token = Contract(chain, proxy, made.token_abi)
    token.send(_CIRCLE, "initialize", "USD Coin", "USDC", "USD", 6, _CIRCLE, _CIRCLE, _CIRCLE, _CIRCLE)
    token.send(_CIRCLE, "initializeV2", "USD Coin")
    token.send(_CIRCLE, "initializeV2_1", _CIRCLE)
    token.send(_CIRCLE, "initializeV2_2", [], "USDC")
    token.send(_CIRCLE, "configureMinter", _CIRCLE, UNLIMITED)
    return token


class World:
    """A fresh chain with everything on it. Verbs read as sentences: `world.create()`, `world.active()`."""

    def __init__(self, token: Contract | None = None, chain: Chain | None = None) -> None:
        self.chain = token.chain if token else chain or Chain()
        self.token = token or deploy_usdc(self.chain)
        artefact = escrow_artefact()
        code = artefact.bytecode + encode(["address"], [self.token.address])
        self.escrow = Contract(self.chain, self.chain.deploy(STRANGER.address, code), artefact.abi)
        self._salt = 0
        if token is None:
            for renter in (RENTER, OTHER_RENTER):
                self.token.send(_CIRCLE, "mint", renter.address, PURSE)
                self.token.send(renter.address, "approve", self.escrow.address, UNLIMITED)

    # ---- the token's keepers ------------------------------------------------------------------------------

    def pause(self, yes: bool = True) -> None:
        self.token.send(_CIRCLE, "pause" if yes else "unpause")

    def blacklist(self, address: str, yes: bool = True) -> None:
        self.token.send(_CIRCLE, "blacklist" if yes else "unBlacklist", address)

    def balance(self, address: str) -> int:
        return int(self.token.read("balanceOf", address))

    # ---- quotes -------------------------------------------------------------------------------------------

    def quote(self, **changes: Any) -> Quote:
        """A new one, valid for ten minutes, that differs from all others by its salt."""
        self._salt += 1
        fresh = Quote(PROVIDER.address, RENTER.address, validUntil=self.chain.now + 600,
                      salt=self._salt.to_bytes(32, "big"))
        return fresh.but(**changes)

    def digest(self, quote: Quote) -> bytes:
        struct = keccak(encode(["bytes32", QUOTE_TUPLE], [keccak(text=QUOTE_TYPE), quote.tuple()]))
        return digest_of(self.escrow.address, struct)

    # ---- budgets ------------------------------------------------------------------------------------------

    def terms(self, **changes: Any) -> Terms:
        """A day's budget of the renter, with any provider, that differs from all others by its salt."""
        self._salt += 1
        fresh = Terms(RENTER.address, SESSION.address, expiry=self.chain.now + 86_400,
                      salt=self._salt.to_bytes(32, "big"))
        return fresh.but(**changes)

    def budget_digest(self, terms: Terms) -> bytes:
        kinds = "(" + ",".join(kind for kind, _ in _TERMS) + ")"
        struct = keccak(encode(["bytes32", kinds], [keccak(text=BUDGET_TYPE), terms.tuple()]))
        return digest_of(self.escrow.address, struct)

    def authorization(self, terms: Terms) -> bytes:
        """What the owner's wallet signs: Circle's own words, with the digest of the terms as the nonce."""
        values = [keccak(text=_RECEIVE_TYPE), terms.owner, self.escrow.address, terms.cap, 0, terms.expiry,
                  self.budget_digest(terms)]
        struct = keccak(encode(["bytes32", "address", "address", "uint256", "uint256", "uint256", "bytes32"], values))
        return bytes(keccak(b"\x19\x01" + self.token.read("DOMAIN_SEPARATOR") + struct))

    def open_budget(self, terms: Terms | None = None, *, signer: Person = RENTER, sender: Person = STRANGER) -> Terms:
        terms = terms or self.terms()
        self.escrow.send(sender.address, "openBudget", terms.tuple(), signer.sign(self.authorization(terms)))
        return terms

    def create_by(self, session: Person, quote: Quote | None = None, *, key: bytes = b"\x01" * 32, seconds: int = 3600,
                  at_most: int = UNLIMITED, signer: Person = PROVIDER, providers: tuple[str, ...] = ()) -> bytes:
        """createFromBudget."""
        quote = quote or self.quote()
        arguments = (key, quote.tuple(), signer.sign(self.digest(quote)), seconds, at_most, b"\xac" * 32, providers)
        self.escrow.send(session.address, "createFromBudget", *arguments)
        return self.id_of(quote.renter, key)

    def end_digest(self, id: bytes, report: bytes) -> bytes:
        kind = keccak(text="End(bytes32 id,bytes32 reportDigest)")
        return digest_of(self.escrow.address, keccak(encode(["bytes32"] * 3, [kind, id, report])))

    def id_of(self, renter: str, key: bytes) -> bytes:
        kinds = ["uint256", "address", "address", "bytes32"]
        return bytes(keccak(encode(kinds, [CHAIN_ID, self.escrow.address, renter, key])))

    # ---- rentals ------------------------------------------------------------------------------------------

    def create(self, quote: Quote | None = None, *, key: bytes = b"\x01" * 32, seconds: int = 3600,
               at_most: int = UNLIMITED, signer: Person = PROVIDER, signature: bytes | None = None,
               sender: str | None = None, access: bytes = b"\xac" * 32) -> bytes:
        quote = quote or self.quote()
        signature = signer.sign(self.digest(quote)) if signature is None else signature
        arguments = (key, quote.tuple(), signature, seconds, at_most, access)
        self.escrow.send(sender or quote.renter, "create", *arguments)
        return self.id_of(quote.renter, key)

    def active(self, quote: Quote | None = None, **how: Any) -> bytes:
        id = self.create(quote, **how)
        self.escrow.send(PROVIDER.address, "activate", id, b"\x4e" * 32)
        return id

    def rental(self, id: bytes) -> Any:
        return self.escrow.read("rental", id)

    def after(self, seconds: int) -> None:
        self.chain.warp(self.chain.now + seconds)


def list_hash(providers: tuple[str, ...]) -> bytes:
    return bytes(keccak(encode(["address[]"], [providers])))


@contextmanager
def refused(name: str, *arguments: Any) -> Iterator[None]:
    """The block must be refused with this error; arguments are compared if given."""
    try:
        yield
    except Reverted as error:
        assert error.name == name, error
        assert not arguments or error.arguments == arguments, error
    else:
        raise AssertionError(f"not refused, expected {name}")
