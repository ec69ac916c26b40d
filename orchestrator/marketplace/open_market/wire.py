"""Market protocol, version 1: what goes over the wire, as strict models, and the digests that bind it to the chain.

Both sides read this file: the driver takes nothing from a market that did not pass these models, and the provider
writes through them. Amounts are strings in base units, times are seconds of the chain, ids and digests are 0x-hex.
No floats anywhere, so that a digest of a document means the same on every machine. No I/O here.
"""
from __future__ import annotations

import hashlib
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from ...domain.document import Json, canonical
from ...domain.escrow import Quote, Ready
from ...domain.lease import HardwareClaim
from ...domain.text import clean

VERSION = 1
MOST_UINT96 = 2 ** 96 - 1
MOST_FEE_BPS = 1500
SSH_KEY_LINE = re.compile(r"ssh-ed25519 [A-Za-z0-9+/]{68}")

INFO, OFFERS, QUOTES = "/v1/info", "/v1/offers", "/v1/quotes"


def rental_path(rental_id: str) -> str:
    return f"/v1/rentals/{rental_id}"


def end_hint_path(rental_id: str) -> str:
    return f"/v1/rentals/{rental_id}/end-hint"


# ---- digests ----------------------------------------------------------------------------------------------


def access_hash(ssh_public_key: str) -> str:
    """The key that a provider may let in, as the contract knows it. For "ssh-ed25519 AAAA…", without comment."""
    return "0x" + hashlib.sha256(ssh_public_key.encode("ascii")).hexdigest()


def spec_hash(spec: Json) -> str:
    """Digest of a specification exactly as it was served: fields that we do not know count too."""
    return "0x" + hashlib.sha256(canonical(spec)).hexdigest()


def offer_hash(offer_id: str) -> str:
    """The offer's name as the quote carries it."""
    return "0x" + hashlib.sha256(offer_id.encode("ascii")).hexdigest()


# ---- words ------------------------------------------------------------------------------------------------


def _amount(text: str) -> str:
    if int(text) > MOST_UINT96:
        raise ValueError("does not fit 96 bits")
    return text


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
Words = Annotated[str, Field(max_length=200), AfterValidator(clean)]
Hex32 = Annotated[str, Field(pattern=r"^0x[0-9a-f]{64}$")]
Address = Annotated[str, Field(pattern=r"^0x[0-9a-fA-F]{40}$")]
Signature = Annotated[str, Field(pattern=r"^0x[0-9a-f]{2,2048}$")]
Amount = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,28})$"), AfterValidator(_amount)]
Seconds = Annotated[int, Field(ge=0, le=2 ** 32 - 1)]
Time = Annotated[int, Field(ge=0, le=2 ** 53)]
Host = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9.:-]{0,253}[A-Za-z0-9])?$")]
SshKey = Annotated[str, Field(pattern=f"^{SSH_KEY_LINE.pattern}$")]


class Wire(BaseModel):
    """Strict about what we know, silent about what we do not: a newer provider may say more."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class Info(Wire):
    versions: Annotated[list[Annotated[int, Field(ge=0, le=1000)]], Field(max_length=16)]
    name: Words = ""
    chain_id: Annotated[int, Field(ge=1, le=2 ** 53)]
    escrow: Address
    token: Address
    time: Time


class Spec(Wire):
    gpu: Words
    count: Annotated[int, Field(ge=1, le=64)]
    vram_mib: Annotated[int, Field(ge=0, le=2 ** 24)]
    ram_mib: Annotated[int, Field(ge=0, le=2 ** 32)] = 0
    disk_gib: Annotated[int, Field(ge=0, le=2 ** 24)] = 0
    driver: Words = ""
    simulated: bool = False

    def claim(self) -> HardwareClaim:
        return HardwareClaim(self.gpu, self.count, self.vram_mib, self.ram_mib, self.disk_gib)


class OfferAnswer(Wire):
    """`spec` stays as it was served, since its digest is signed; `Spec` reads it."""

    offer_id: Name
    provider: Address
    spec: dict[str, Json]
    price_per_hour: Amount
    fee_bps: Annotated[int, Field(ge=0, le=MOST_FEE_BPS)] = 0
    min_seconds: Seconds = 0
    max_seconds: Seconds
    inspection_seconds: Seconds
    reliability: Annotated[int, Field(ge=0, le=1000)] | None = None


class OfferPage(Wire):
    offers: Annotated[list[OfferAnswer], Field(max_length=200)]
    next: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,128}$")] | None = None


class QuoteOrder(Wire):
    offer_id: Name
    renter: Address
    seconds: Seconds
    access_hash: Hex32


class QuoteFields(Wire):
    provider: Address
    renter: Address
    offerId: Hex32
    specHash: Hex32
    pricePerHour: Amount
    feeBps: Annotated[int, Field(ge=0, le=MOST_FEE_BPS)]
    feeRecipient: Address
    minSeconds: Seconds
    maxSeconds: Seconds
    startWindow: Seconds
    inspectionSeconds: Seconds
    validUntil: Time
    salt: Hex32

    def quote(self) -> Quote:
        return Quote(**{**self.model_dump(), "pricePerHour": int(self.pricePerHour)})


class QuoteAnswer(Wire):
    quote: QuoteFields
    signature: Signature
    spec: dict[str, Json]


class Hint(Wire):
    """The renter's word to the provider that a deposit is there. It proves nothing: the chain does."""

    ssh_public_key: SshKey


class ReadyFields(Wire):
    rentalId: Hex32
    host: Host
    port: Annotated[int, Field(ge=1, le=65535)]
    user: Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_-]{0,31}$")]
    hostKeys: Annotated[list[SshKey], Field(min_length=1, max_length=8)]
    accessHash: Hex32
    notBefore: Time
    salt: Hex32

    def ready(self) -> Ready:
        return Ready(**{**self.model_dump(), "hostKeys": tuple(self.hostKeys)})


class RentalAnswer(Wire):
    state: Literal["waiting", "ready", "ended"]
    ready: ReadyFields | None = None
    signature: Signature | None = None


class Problem(Wire):
    """RFC 9457. `code` is the stable word."""

    status: int = 0
    code: Annotated[str, Field(pattern=r"^[a-z-]{1,40}$")] = "unknown"
    detail: Words = ""


def quote_fields(quote: Quote) -> dict[str, Json]:
    """A quote as it is served and journalled."""
    tree = {name: getattr(quote, name) for name in QuoteFields.model_fields}
    return {**tree, "pricePerHour": str(quote.pricePerHour)}


def ready_fields(ready: Ready) -> dict[str, Json]:
    tree = {name: getattr(ready, name) for name in ReadyFields.model_fields}
    return {**tree, "hostKeys": list(ready.hostKeys)}


def first_fault(problem: ValidationError) -> str:
    """The first thing that is wrong with a document, without its value."""
    fault = problem.errors(include_url=False, include_context=False, include_input=False)[0]
    return clean(f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}")
