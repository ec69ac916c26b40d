"""From a page of YAML to checked values; every error names file, line, field and value, and says what would do."""
from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..domain.lease import Wish
from ..domain.money import Rate
from ..domain.price import Price
from ..errors import BadInput
from .values import PUBLIC_HUB, OpenMarket, Policy, RunFile, Settings, SshHost
from .yamlfile import Page, Place, read_page

if TYPE_CHECKING:
    from pydantic import BaseModel

    from .models import Open, PriceLine, Run, Training

    M = TypeVar("M", bound=BaseModel)

MOST_PATH = 1024
WORDS = {
    "missing": "is missing", "string_type": "must be text", "int_type": "must be a whole number",
    "bool_type": "must be true or false", "model_type": "must be a group of fields",
    "model_attributes_type": "must be a group of fields", "dict_type": "must be a group of fields",
    "string_too_short": "must not be empty", "literal_error": "must be one of {expected}",
    "greater_than": "must be more than {gt}", "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}", "less_than_equal": "must be at most {le}",
}


def load_run(path: Path) -> RunFile:
    """The run file at `path`. Raises BadInput; opens nothing but this one file."""
    from .models import RehearsedRun, Run
    page = read_page(path)
    if isinstance(page.tree.get("revision"), int | Decimal):
        page.tree["revision"] = page.texts["revision",]      # a short commit may look like a number
    run = _checked(RehearsedRun if page.tree.get("engine") == "rehearsal" else Run, page)
    _must_agree(run, page)
    folder = path.absolute().parent
    return RunFile(
        path=path.absolute(), model=run.model, revision=run.revision, dataset=_path(folder, run.dataset),
        format=run.format, method=run.method, market=run.market, seconds=run.hours, budget=run.budget,
        output=_path(folder, run.output or f"adapters/{path.stem}"), wish=_wish(run), knobs=_knobs(run.training, page),
        seed=run.training.seed, engine=run.engine, ssh=_ssh(run, folder))


def load_settings(state: Path) -> Settings:
    """`settings.yaml` of the state directory, or the defaults where there is none. Raises BadInput."""
    from .models import SettingsPage
    path = state / "settings.yaml"
    if not path.exists():
        return Settings(state)
    found = read_page(path)
    page = _checked(SettingsPage, found)
    _wallet_must_agree(page.open, found)
    return Settings(state, (page.hub or PUBLIC_HUB).rstrip("/"), _open_market(page.open, state),
                    Policy(page.policy.operator_can_read), page.contact_seconds, page.silence_seconds,
                    page.patience_seconds, tuple(map(_price, page.prices)))


def _price(line: PriceLine) -> Price:
    return Price(line.where, line.card, Rate(line.per_hour), line.date, "settings.yaml", line.cards)


def _open_market(part: Open | None, state: Path) -> OpenMarket | None:
    if part is None:
        return None
    password_file = _path(state, part.password_file) if part.password_file else None
    return OpenMarket(part.url.rstrip("/"), part.rpc, part.escrow or "", part.token or "", part.chain_id,
                      _path(state, part.keystore), part.account or "", password_file, part.accept_unaudited,
                      part.most_deposit)


def _wallet_must_agree(part: Open | None, page: Page) -> None:
    if part and part.wallet == "browser" and not part.account:
        raise page.error(("open", "wallet"), "browser needs the account", hint='add `account: "0x…"`, as it is shown there')
    if part and part.wallet != "browser" and part.account:
        raise page.error(("open", "account"), "is not used with a keystore", hint="write `wallet: browser`, or remove it")


def _must_agree(run: Run, page: Page) -> None:
    """What no single field shows."""
    if run.market == "ssh" and run.ssh is None:
        raise page.error(("market",), "ssh needs the server", hint="add `ssh: {host: …}` to the run file")
    if run.market != "ssh" and run.ssh is not None:
        raise page.error(("ssh",), f"is not used with market: {run.market}", hint="write `market: ssh`, or remove it")
    if run.market != "ssh" and run.budget is None:
        raise page.error((), "budget is missing", hint='add a line like `budget: "8.00 USDC"`')


def _path(folder: Path, text: str) -> Path:
    """A path of the file, from its folder. BadInput for what no file system takes."""
    if "\0" in text or len(text.encode()) > MOST_PATH:
        raise BadInput(f"{text[:40]!a}… is no path: too long, or with a NUL in it", hint="name a file or folder")
    try:
        return folder / Path(text).expanduser()
    except RuntimeError:
        raise BadInput(f"{text!a}: no such user", hint="write the whole path") from None


def _wish(run: Run) -> Wish:
    node = run.node
    return Wish(node.gpu, node.vram_gib, node.ram_gib, node.disk_gib, int(node.min_reliability * 1000))


def _ssh(run: Run, folder: Path) -> SshHost | None:
    if run.ssh is None:
        return None
    key = _path(folder, run.ssh.identity) if run.ssh.identity else None
    return SshHost(run.ssh.host, run.ssh.port, run.ssh.user, key, run.ssh.fingerprint, run.ssh.keep)


def _knobs(training: Training, page: Page) -> tuple[tuple[str, str], ...]:
    """What was written, as text: a decimal exactly as it stands in the file."""
    return tuple(sorted((name, _knob(getattr(training, name), page.texts.get(("training", name), "")))
                        for name in training.model_fields_set if name != "seed"))


def _knob(value: Any, written: str) -> str:
    if isinstance(value, Decimal):
        return written.replace("_", "")
    return ",".join(value) if isinstance(value, tuple) else str(value)


# ---- errors -----------------------------------------------------------------------------------------------


def _checked(model: type[M], page: Page) -> M:
    from pydantic import ValidationError
    try:
        return model.model_validate(page.tree)
    except ValidationError as problem:
        found = sorted(problem.errors(include_url=False), key=lambda e: e["type"] != "extra_forbidden")
        raise _explain(model, page, found[0], len(found) - 1) from None    # pydantic's own text shows every value


def _explain(model: type[BaseModel], page: Page, error: Mapping[str, Any], more: int) -> BadInput:
    place: Place = tuple(error["loc"])
    tail = f" (and {more} more)" if more else ""
    if error["type"] == "extra_forbidden":
        known = _fields(model, place[:-1])
        near = difflib.get_close_matches(str(place[-1]), known, n=1, cutoff=0.5)
        hint = f"did you mean `{near[0]}`" if near else f"known here: {', '.join(known)}"
        return page.error(place, f"unknown field{tail}", hint)
    context = {name: f"{v:f}" if isinstance(v, Decimal) else v for name, v in error.get("ctx", {}).items()}
    words = str(context["error"]) if error["type"] == "value_error" else \
        WORDS.get(error["type"], str(error["msg"]).lower()).format(**context)
    if error["type"] == "missing":
        return page.error(place[:-1], f"{place[-1]} {words}{tail}", hint=f"add a line `{place[-1]}: …`")
    return page.error(place, f"{words}, not {_shown(error.get('input'))}{tail}", _nearest(error))


def _nearest(error: Mapping[str, Any]) -> str | None:
    if error["type"] != "literal_error":
        return None
    choices = [c.strip(" '") for c in str(error["ctx"]["expected"]).replace(" or ", ", ").split(",")]
    near = difflib.get_close_matches(str(error["input"]), choices, n=1)
    return f"did you mean `{near[0]}`" if near else None


def _fields(model: type[BaseModel], place: Place) -> list[str]:
    for name in place:
        if isinstance(name, int):        # an item of a list: the list's field has said what its items are
            continue
        model = next(kind for kind in _models_in(model.model_fields[str(name)].annotation))
    return list(model.model_fields)


def _models_in(kind: Any) -> Iterator[type[BaseModel]]:
    from typing import get_args

    from pydantic import BaseModel
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for part in get_args(kind):
        yield from _models_in(part)


def _shown(value: Any) -> str:
    """The value as its writer would know it, short and in plain characters."""
    if isinstance(value, dict):
        return "a group of fields"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value[:5]))}]"[:80]
    if isinstance(value, int) and value.bit_length() > 100:
        return "a number beyond all measure"
    text = "nothing" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return (ascii(text) if isinstance(value, str) else text)[:80]
