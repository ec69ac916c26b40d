"""Questions on the terminal, each with an answer that Enter takes. Says nothing of its own on stdout."""
from __future__ import annotations

from collections.abc import Callable, Mapping

from ..errors import BadInput
from .desk import ask, note

TRIES = 3


class Dialogue:
    """`silent`: nothing is asked, every default is taken."""

    def __init__(self, silent: bool, ask: Callable[[str], str] = ask) -> None:
        self._silent, self._ask = silent, ask

    def text(self, question: str, default: str, check: Callable[[str], str] = str) -> str:
        """`check` returns the answer as it is meant, or raises BadInput; then it is asked again."""
        if self._silent:
            return check(default)
        for left in reversed(range(TRIES)):
            said = self._ask(f"{question} [{default}] " if default else f"{question} ") or default
            try:
                return check(said)
            except BadInput as problem:
                if not left:
                    raise
                note(f"{problem}{f'; {problem.hint}' if problem.hint else ''}")
        raise AssertionError("the last try returns or raises")

    def choice(self, question: str, choices: Mapping[str, str], default: str) -> str:
        """One of the words, by its beginning. `choices`: word to what it means."""
        if not self._silent:
            note(question)
            for word, meaning in choices.items():
                note(f"  {word:12} {meaning}")
        return self.text("which?", default, lambda said: chosen(said, choices))


def chosen(said: str, choices: Mapping[str, str]) -> str:
    found = [word for word in choices if said and word.startswith(said.lower())]
    exact = said.lower() in choices
    if exact or len(found) == 1:
        return said.lower() if exact else found[0]
    wrong = f"may be {' or '.join(found)}" if found else "is not known here"
    raise BadInput(f"{said!a} {wrong}", hint=f"one of {', '.join(choices)}")
