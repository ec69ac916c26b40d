"""`sealtune audit RUN | FOLDER | FILE`: re-check a run's signed report offline, check by numbered check."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .options import JSON

if TYPE_CHECKING:
    from ..audit.sshsig import PublicKey
    from ..audit.verify import AuditResult
    from ..settings.values import Settings

SIGNER = typer.Option(None, "--signer", metavar="FILE",
                      help="Keys to trust: ssh's allowed_signers format, or a public key as ssh-keygen writes it.")
MOST_SIGNERS = 1024 * 1024


def audit(what: str = typer.Argument(..., metavar="RUN", help="A run's name, a folder with its report, or the report."),
          signer: Path | None = SIGNER, json: bool = JSON) -> None:
    """Audit a signed wipe report.

    Offline, check by numbered check; this machine's reports, or somebody else's with --signer.
    """
    from .. import wiring
    from ..audit.verify import audit as check
    from .desk import Desk

    settings = Desk.open().settings
    folder, trusted = _folder(settings, what), _trusted(settings, signer)
    found = check(folder, trusted, wiring.this_release())
    known = found.fingerprint in {key.fingerprint for key in trusted}
    show_found(found) if json else tell_found(found, known)
    raise typer.Exit(found.verdict.exit_code)


def _folder(settings: Settings, what: str) -> Path:
    """A run goes before a folder of the same name here; only a plain name is one."""
    from .. import wiring
    from ..audit.case import folder_of
    from ..domain.names import RunId
    from ..domain.text import plain
    from ..errors import NoSuchRun
    from ..journal.journals import RUN_NAME

    home = wiring.home_of(settings, RunId(what)) if RUN_NAME.fullmatch(what) else None
    folder = home if home and home.is_dir() else folder_of(Path(what))
    if folder is None:
        raise NoSuchRun(f"no run, no folder and no report {plain(what)!r}", hint=_nearest(settings, what))
    return folder


def _nearest(settings: Settings, what: str) -> str:
    """The command with the name that was perhaps meant."""
    import difflib

    runs = settings.state / "runs"
    names = [home.name for home in runs.iterdir()] if runs.is_dir() else []
    near = difflib.get_close_matches(what, names, n=1)
    return f"sealtune audit {near[0]}" if near else "sealtune status names the runs; FOLDER or FOLDER/report.json works too"


def _trusted(settings: Settings, signer: Path | None) -> frozenset[PublicKey]:
    from .. import wiring
    from ..audit.sshsig import trusted_signers
    from ..errors import BadInput

    if signer is None:
        return wiring.trusted_key(settings)
    try:
        with signer.open("rb") as file:
            data = file.read(MOST_SIGNERS + 1)
        if len(data) > MOST_SIGNERS:
            raise ValueError(f"longer than {MOST_SIGNERS} bytes")
        keys = trusted_signers(data)
    except BadInput as problem:
        raise BadInput(f"--signer {signer}: {problem}", problem.hint) from problem
    except (OSError, ValueError) as problem:
        raise BadInput(f"--signer {signer}: {getattr(problem, 'strerror', None) or problem}",
                       hint="ssh-keygen -y -f controller.key, at whoever signed, makes the public key") from problem
    if not keys:
        raise BadInput(f"--signer {signer}: no ed25519 key in it that may sign reports",
                       hint="NAME namespaces=\"sealtune-report\" ssh-ed25519 AAAA…")
    return keys


def show_found(found: AuditResult) -> None:
    from .render import show_json

    show_json({"verdict": found.verdict.value, "signer": found.fingerprint or None, "simulated": found.simulated,
               "receipts": list(found.receipts),
               "checks": [{"number": c.number, "text": c.text, "word": c.word, "why": c.why} for c in found.checks]})


def tell_found(found: AuditResult, known: bool) -> None:
    from .desk import note
    from .play import SIMULATED
    from .render import show_checks

    show_checks(found.checks)
    for receipt in found.receipts:
        note(f"the anchor is claimed to stand on the chain in transaction {receipt}; offline, nobody looked")
    note(f"signed by {found.fingerprint or 'nobody whose signature fits'}")
    if found.fingerprint and not known:
        note("hint: --signer FILE with the public key of whoever made it, got by another way than the report")
    typer.echo(f"verdict: {found.verdict.value}{f' ({SIMULATED})' if found.simulated else ''}")
