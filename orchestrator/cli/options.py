"""Options that several commands share, spelled once."""
from __future__ import annotations

import typer

JSON = typer.Option(False, "--json", help="Print one JSON object on stdout.")
YES = typer.Option(False, "--yes", "-y", help="Do not ask. Never lifts a limit.")
UNDERSTAND = typer.Option(False, "--i-understand-operator-can-read",
                          help="The operator of a rented node can read what it computes; needed with --yes.")
ON_INTERRUPT = typer.Option("ask", "--on-interrupt", help="What Ctrl-C means: ask, wait, detach or stop.")
LAB = typer.Option(False, "--lab", help="The lab's own wallet and escrow, with play money.")
PASSWORD_FILE = typer.Option(None, "--password-file", metavar="FILE",
                             help="Where the keystore's password stands, in a file that only you can read.")
