"""The shape of both files, for pydantic. Strict: nothing is guessed, an unknown field is an error.

Validators raise ValueError with the end of a sentence ("must be …"); read.py puts file, line and field before it. A
description is what schema.py tells an editor, and page.py writes above the field.
"""
from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    WithJsonSchema,
)
from pydantic_core.core_schema import CoreSchema, no_info_after_validator_function

from ..domain.money import USDC, Money
from ..domain.price import USD
from .values import MOST_DEPOSIT

MOST_HOURS = 24
MODEL_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?")
REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}")
MODULE = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,99}")
HOST = re.compile(r"[A-Za-z0-9:][A-Za-z0-9.:_-]{0,252}")
USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
URL = re.compile(r"https?://[^\s/@?#]+(/[^\s?#]*)?")
AMOUNT = {"type": "string", "pattern": r"^\s*[0-9]{1,18}(\.[0-9]{1,6})?\s*[Uu][Ss][Dd][Cc]\s*$", "examples": ["8.00 USDC"]}
A_MODEL = {"type": "string", "pattern": f"^({MODEL_ID.pattern})$"}
A_REVISION = {"type": ["string", "number"], "pattern": f"^({REVISION.pattern})$"}       # a short commit may be a number
HOURS = {"anyOf": [{"const": "auto"}, {"type": "number", "exclusiveMinimum": 0, "maximum": MOST_HOURS}]}
COUNT = {"anyOf": [{"const": "auto"}, {"type": "integer", "minimum": 1, "maximum": 4096}]}
NAMES = {"anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": {"type": "string", "minLength": 1}}]}
AGREED: dict[str, Any] = {               # what no single field shows: read.py's _must_agree
    "if": {"properties": {"market": {"const": "ssh"}}, "required": ["market"]},
    "then": {"required": ["ssh"]}, "else": {"required": ["budget"], "not": {"required": ["ssh"]}}}
FORMATS = Literal["auto", "text", "prompt_completion", "question_answer", "messages", "alpaca", "dolly", "sharegpt"]
SCHEDULES = Literal["linear", "cosine", "cosine_with_restarts", "polynomial", "constant", "constant_with_warmup",
                    "inverse_sqrt"]


@dataclass(frozen=True, slots=True)
class Matching:
    """A text of this pattern; `words` end the sentence where it is not."""

    pattern: re.Pattern[str]
    words: str

    def check(self, text: str) -> str:
        if not self.pattern.fullmatch(text) or ".." in text:
            raise ValueError(f"must be {self.words}")
        return text

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(core), "pattern": f"^({self.pattern.pattern})$"}


def chain_nodes(value: Any) -> tuple[str, ...]:
    """One address, or a list of them."""
    found = tuple(value) if isinstance(value, list) else (value,)
    if not found or not all(isinstance(one, str) and URL.fullmatch(one) and ".." not in one for one in found):
        raise ValueError("must be an address like https://node.example, or a list of such")
    return found


def number(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError("must be a number")
    return Decimal(value)


def model_id(text: str) -> str:
    if text.startswith((".", "/", "~")):
        raise ValueError("must be a hub id like owner/name (a local folder cannot be used yet)")
    if not MODEL_ID.fullmatch(text) or ".." in text or "--" in text:
        raise ValueError("must be a hub id like owner/name")
    return text


def not_full(value: Any) -> Any:
    if value == "full":
        raise ValueError("must be lora or qlora (training all weights is not supported yet)")
    return value


def as_seconds(value: Any) -> int | None:
    """Seconds, or None for "auto"."""
    if value == "auto":
        return None
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or not 0 < value <= MOST_HOURS:
        raise ValueError(f"must be auto, or a number of hours up to {MOST_HOURS}")
    return max(1, int(Decimal(value) * 3600))


def as_money(value: Any) -> Money:
    if not isinstance(value, str):
        raise ValueError('must be text with its currency, like "8.00 USDC"')
    try:
        money = Money.parse(value, USDC)
    except ValueError as problem:
        raise ValueError(f'{problem}; like "8.00 USDC"') from None
    if not money.units:
        raise ValueError("must be more than nothing")
    return money


def as_dollars(value: Any) -> Money:
    if not isinstance(value, str):
        raise ValueError('must be text with its currency, like "1.50 USD"')
    try:
        return Money.parse(value, USD)
    except ValueError as problem:
        raise ValueError(f'{problem}; like "1.50 USD"') from None


def names(value: Any) -> tuple[str, ...]:
    """A list of texts, or one text with commas."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list) or not all(isinstance(p, str) and p.strip() for p in parts):
        raise ValueError("must be a name or a list of names")
    return tuple(p.strip() for p in parts)


def modules(value: Any) -> tuple[str, ...]:
    found = names(value)
    for name in found:
        if name != "all-linear" and not MODULE.fullmatch(name):
            raise ValueError("must be names of modules")
    return found


def no_head(found: tuple[str, ...]) -> tuple[str, ...]:
    if "all-linear" in found and len(found) > 1:
        raise ValueError("must be all-linear alone, or names of modules")
    if "lm_head" in found:
        raise ValueError("must be modules other than lm_head, which goes into modules_to_save")
    return found


def rate(value: Decimal) -> Decimal:
    if not Decimal("1e-9") <= value <= 1:
        raise ValueError("must be more than 0 and at most 1")
    return value


Number = Annotated[Decimal, BeforeValidator(number), WithJsonSchema({"type": "number"})]
Seconds = Annotated[int, Field(ge=1, le=2_592_000)]
Modules = Annotated[tuple[str, ...], BeforeValidator(modules), WithJsonSchema(NAMES)]


def auto_or_count(value: Any) -> Any:
    if value == "auto":
        return value
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 4096:
        raise ValueError("must be auto, or a whole number from 1 to 4096")
    return value


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Node(Strict):
    gpu: Annotated[tuple[str, ...], BeforeValidator(names), WithJsonSchema(NAMES)] = Field(
        default=(), description="names of cards, any of which will do; left out: any card")
    vram_gib: int = Field(default=0, ge=0, le=10_000, description="memory of the GPU, at least")
    ram_gib: int = Field(default=0, ge=0, le=100_000, description="main memory, at least")
    disk_gib: int = Field(default=0, ge=0, le=1_000_000, description="disk, at least")
    min_reliability: Annotated[Number, Field(ge=0, le=1)] = Field(
        default=Decimal(0), description="share of the time that the machine was up",
        json_schema_extra={"minimum": 0, "maximum": 1})


class Training(Strict):
    lora_r: int | None = Field(default=None, ge=1, le=1024, description="rank of the adapter (16)")
    lora_alpha: int | None = Field(default=None, ge=1, le=65_536, description="scale of the adapter (32)")
    lora_dropout: Annotated[Number, Field(ge=0, lt=1)] | None = Field(
        default=None, description="share that is dropped while training (0.05)",
        json_schema_extra={"minimum": 0, "exclusiveMaximum": 1})
    learning_rate: Annotated[Number, AfterValidator(rate)] | None = Field(
        default=None, description="how large the steps are; a loss that rises: less, one that stays: more",
        json_schema_extra={"minimum": 1e-9, "maximum": 1})
    lr_scheduler_type: SCHEDULES | None = Field(default=None, description="how the learning rate goes on")
    warmup_steps: int | None = Field(default=None, ge=0, le=1_000_000, description="steps until the full learning rate")
    max_length: int | None = Field(default=None, ge=8, le=1_048_576,
                                   description="tokens of a row; what is longer is cut (1024)")
    per_device_train_batch_size: Annotated[Any, BeforeValidator(auto_or_count), WithJsonSchema(COUNT)] = Field(
        default=None, description="rows at a time on the GPU; auto: as many as it holds, at first 8")
    gradient_accumulation_steps: int | None = Field(default=None, ge=1, le=4096,
                                                    description="batches that make one step of training (1)")
    num_train_epochs: Annotated[Number, Field(gt=0, le=1000)] | None = Field(
        default=None, description="how often each row is seen (3)",
        json_schema_extra={"exclusiveMinimum": 0, "maximum": 1000})
    max_steps: int | None = Field(default=None, ge=1, le=10_000_000,
                                  description="steps in all; goes before num_train_epochs")
    target_modules: Annotated[Modules, AfterValidator(no_head)] | None = Field(
        default=None, description="layers that get an adapter (all-linear)")
    modules_to_save: Modules | None = Field(default=None, description="layers that are trained whole")
    max_new_tokens: int | None = Field(default=None, ge=1, le=4096, description="length of an answer in the evaluation (64)")
    eval_generations: int | None = Field(default=None, ge=1, le=64, description="answers written in the evaluation (64)")
    seed: int = Field(default=1, ge=0, le=2**32 - 1, description="the same seed, the same training")


class RehearsedTraining(Training):
    """The rehearsal's own knobs: for tests of everything around the trainer."""

    rehearsal_steps: int | None = Field(default=None, ge=1)
    rehearsal_step_seconds: Number | None = None
    rehearsal_hang: int | None = None
    rehearsal_fail: int | None = None


class Ssh(Strict):
    host: Annotated[str, Matching(HOST, "a host name, an address or an ssh alias")] = Field(
        description="your server: a name, an address, or an alias of your ssh configuration")
    port: int | None = Field(default=None, ge=1, le=65_535)
    user: Annotated[str, Matching(USER, "a user name")] | None = Field(default=None, description="an ordinary account there")
    identity: str | None = Field(default=None, min_length=1, description="a private key file")
    fingerprint: Annotated[str, Matching(FINGERPRINT, "SHA256: and 43 characters, as of ssh-keygen -l")] | None = Field(
        default=None, description="of its host key, as of ssh-keygen -l")
    keep: bool = Field(default=True, description="packages and base model stay there for the next run")


class Run(Strict):
    model_config = ConfigDict(json_schema_extra=AGREED)

    model: Annotated[str, AfterValidator(model_id), WithJsonSchema(A_MODEL)] = Field(
        description="the base model: a hub id, owner/name")
    revision: Annotated[str, Matching(REVISION, "a branch, a tag or a commit"), WithJsonSchema(A_REVISION)] = Field(
        default="main", description="of the model: a branch, a tag or a commit")
    dataset: str = Field(min_length=1,
                         description="your rows, from this file's folder; they leave this machine encrypted only")
    format: FORMATS = Field(
        default="auto", description="how the rows are written")
    method: Annotated[Literal["lora", "qlora"], BeforeValidator(not_full)] = Field(
        default="qlora", description="qlora holds the base model in four bits and needs the least memory; lora is faster")
    market: Literal["open", "lab", "ssh"] = Field(
        default="open", description="open: a rented machine; lab: play money on this machine; ssh: your own server")
    hours: Annotated[int | None, BeforeValidator(as_seconds), WithJsonSchema(HOURS)] = Field(
        default=None, description="at most, in all; auto: twice what the plan expects at most")
    budget: Annotated[Any, BeforeValidator(as_money), WithJsonSchema(AMOUNT)] = Field(
        default=None, description="deposits never pass this; what is not used comes back, the chain's gas comes on top")
    output: str | None = Field(default=None, min_length=1, description="a new folder for the adapter")
    node: Node = Field(default=Node(), description="what the machine must have at least")
    training: Training = Field(default=Training(), description="knobs of the training; what is left out has a sound default")
    engine: Literal["trl", "rehearsal"] = Field(default="trl",
                                                description="rehearsal: everything but the training, for tests")
    ssh: Ssh | None = Field(default=None, description="your own server; with market: ssh")


class RehearsedRun(Run):
    training: RehearsedTraining = RehearsedTraining()


class Open(Strict):
    url: Annotated[str, Matching(URL, "an address like https://market.example")]
    rpc: Annotated[tuple[str, ...], BeforeValidator(chain_nodes)]
    escrow: Annotated[str, Matching(ADDRESS, "an address, 0x and 40 hex digits")] | None = None
    token: Annotated[str, Matching(ADDRESS, "an address, 0x and 40 hex digits")] | None = None
    chain_id: int = Field(ge=1)
    wallet: Literal["keystore", "browser"] = "keystore"
    account: Annotated[str, Matching(ADDRESS, "an address, 0x and 40 hex digits")] | None = None
    keystore: str = Field(default="wallet.json", min_length=1)
    password_file: str | None = Field(default=None, min_length=1)
    accept_unaudited: bool = False
    most_deposit: Annotated[Any, BeforeValidator(as_money)] = MOST_DEPOSIT


class PolicyPart(Strict):
    operator_can_read: bool = False


class PriceLine(Strict):
    where: str = Field(min_length=1, max_length=60)
    card: str = Field(min_length=1, max_length=60)
    per_hour: Annotated[Any, BeforeValidator(as_dollars)]
    date: Annotated[str, Matching(DATE, "a date like 2026-12-01, in quotes")]
    cards: int = Field(default=1, ge=1, le=64)


class SettingsPage(Strict):
    prices: list[PriceLine] = Field(default_factory=list, max_length=200)
    hub: Annotated[str, Matching(URL, "an address like https://hub.example")] | None = None
    open: Open | None = None
    policy: PolicyPart = PolicyPart()
    contact_seconds: Seconds = 120
    silence_seconds: Seconds = 43_200
    patience_seconds: Seconds = 600
