"""The fixed texts of a report: what is never claimed, said by id. An id is never reused for another text."""
from __future__ import annotations

ALWAYS = ("operator-memory", "not-proven", "operator-snapshot", "owner-could-forge", "no-processor")

CAVEATS = {
    "operator-memory": "whoever runs this machine could read its memory, and data and keys in it, while it computed",
    "not-proven": "deletion on a machine of somebody else is evidenced by what was done and observed, never proven",
    "operator-snapshot": "a copy of disk or memory that the operator took earlier would not show here",
    "owner-could-forge": "this is what the renter's laptop recorded, unchanged since; its owner could have made it up",
    "no-processor": "pseudonymised data stays personal data, and an anonymous operator signs no processor contract",
    "memory": "overwriting memory in use is best effort; copies inside the interpreter may have stayed until it ended",
    "cow": "the file system writes changes elsewhere; overwriting in place does not reach older copies",
    "journal": "the file system may have kept copies in its journal",
    "ssd": "flash memory keeps older copies out of reach of any file system",
    "simulated": "the node says itself that its hardware is a simulation",
    "not-wiped": "when this was written, the node had not been wiped",
}

CONDITIONS = (
    ("strength", "keys of at least 128 bits", "yes", "age: X25519 and ChaCha20-Poly1305"),
    ("never-plain", "no plaintext was ever on the medium", "unknown", "only ciphertext was written by us"),
    ("all-copies", "every copy of the key could be destroyed", "unknown", "the operator could have read it in memory"),
    ("memory", "unwrapped copies in memory are gone", "unknown", "the process ended; who else read it cannot be known"),
    ("not-kept", "no copy of the key was kept elsewhere", "no",
     "the laptop holds it until the lease is settled; the closing record says when it was destroyed"),
    ("validated", "the cryptographic module is validated", "no", "age is not a validated module"),
)


GIVEN_UP = {
    "NodeLost": "the node was lost, or would not do it",
    "LeaveNode": "the node refused to",
    "Transient": "it never became complete",
    "Unreachable": "the market did not answer",
    "HostKeyChanged": "another key answered under the node's address",
}


def given_up(error: str) -> str:
    """Why a release on the node was given up; `error` is what the log calls it, in this release or another."""
    return f"given up: {GIVEN_UP.get(error, 'it could not be done')}"


def caveats(*ids: str) -> list[dict[str, str]]:
    """These and the constant ones, each once, in the order of the table. An unknown id is left out."""
    wanted = {*ALWAYS, *ids}
    return [{"id": name, "text": text} for name, text in CAVEATS.items() if name in wanted]


def ce_conditions() -> list[dict[str, str]]:
    """Conditions of a cryptographic erase, and which of them hold: the reason why no level is claimed."""
    return [{"id": name, "text": text, "holds": holds, "why": why} for name, text, holds, why in CONDITIONS]
