"""The door of the payload: `python -I payload.zip train|rehearse|fetch|challenge ...`.

The archive holds this file twice: at its root, where Python looks for it, and inside the package. It
imports nothing but what the word asks for, and it runs on Python 3.8 until a job needs more.
"""
from __future__ import annotations

import sys

WORDS = ("train", "rehearse", "fetch", "challenge")


def main(argv: list[str]) -> int:
    """Hands the rest of the arguments to the job's own main. Exit code 2: no such word."""
    word = argv[1] if len(argv) > 1 else ""
    rest = argv[2:]
    if word == "train":
        from remote_payload.train import main as train
        return int(train(rest))
    if word == "rehearse":
        from remote_payload.rehearse import main as rehearse
        return int(rehearse(rest))
    if word == "fetch":
        from remote_payload.fetch import main as fetch
        return int(fetch(rest) or 0)
    if word == "challenge":
        from remote_payload.challenge import main as challenge
        return int(challenge(rest) or 0)
    sys.stderr.write("usage: payload.zip " + "|".join(WORDS) + "\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv))
