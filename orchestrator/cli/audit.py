"""`sealtune audit RUN | FOLDER`: re-check a run's signed report offline, check by numbered check."""
from __future__ import annotations

from pathlib import Path

import typer

from .options import JSON

SIGNER = typer.Option(None, "--signer", metavar="FILE", help="Keys to trust, in ssh's allowed_signers format.")


def audit(what: str = typer.Argument(..., metavar="RUN", help="A run's name, or a folder with its report."),
          signer: Path | None = SIGNER, json: bool = JSON) -> None:
    """Audit a signed wipe report.

    Offline, check by numbered check; this machine's reports, or somebody else's with --signer.
    """
    from .. import wiring
    from ..audit.sshsig import allowed_signers
    from ..audit.verify import audit as check
    from ..errors import BadInput, NoSuchRun
    from .desk import Desk, note
    from .play import SIMULATED
    from .render import show_checks, show_json

    settings = Desk.open().settings
    folder = next((f for f in (settings.state / "runs" / what, Path(what)) if f.is_dir()), None)
    if folder is None:
        raise NoSuchRun(f"no run and no folder {what!r}", hint="sealtune status")
    try:
        trusted = allowed_signers(signer.read_text()) if signer else wiring.trusted_key(settings)
    except (OSError, ValueError) as problem:
        raise BadInput(f"--signer {signer}: {problem}") from problem
    found = check(folder, trusted, wiring.this_release())
    if json:
        show_json({"verdict": found.verdict.value, "signer": found.fingerprint or None, "simulated": found.simulated,
                   "receipts": list(found.receipts),
                   "checks": [{"number": c.number, "text": c.text, "word": c.word, "why": c.why} for c in found.checks]})
    else:
        show_checks(found.checks)
        for receipt in found.receipts:
            note(f"the anchor is claimed to stand on the chain in transaction {receipt}; offline, nobody looked")
        note(f"signed by {found.fingerprint or 'nobody whose signature fits'}")
        typer.echo(f"verdict: {found.verdict.value}{f' ({SIMULATED})' if found.simulated else ''}")
    raise typer.Exit(found.verdict.exit_code)
