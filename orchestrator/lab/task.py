"""The lab's own private data: short invented visits, each to be answered with a made-up diagnosis code.

A random model knows none of it (0 %), a tiny one learns all of it in seconds, so a demo and the tests can
show that training really learned. No person in it exists. It must not be used to judge a real model.
"""
from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

DIAGNOSES = {
    "gout attack": "M10", "migraine": "G43", "asthma": "J45", "back pain": "M54", "otitis media": "H66",
    "bronchitis": "J40", "gastritis": "K29", "eczema": "L30", "anaemia": "D50", "tonsillitis": "J03",
    "sinusitis": "J01", "cystitis": "N30", "vertigo": "R42", "insomnia": "G47", "sciatica": "M57", "urticaria": "L50",
}
SPANS = {"hours": "A", "days": "B", "weeks": "R", "years": "C"}
COUNTS = (2, 3, 4, 5)
FIRST = ("Anna", "Bernd", "Clara", "David", "Elena", "Felix", "Greta", "Hanno",
         "Ines", "Jonas", "Karla", "Lukas", "Maria", "Nils", "Olga", "Paul")
LAST = ("Becker", "Carlsen", "Decker", "Ebert", "Fischer", "Grimm", "Hansen", "Ilgner",
        "Jansen", "Keller", "Lorenz", "Maurer", "Neumann", "Otto", "Petersen", "Richter")
TEMPLATES = (
    "Patient {name}, {age} years, presents with {what} since {span}.",
    "{name} ({age}) reports {what} for {span}.",
    "Seen today: {name}, {age} years old. Complaint: {what}, duration {span}.",
    "{what} since {span} in {name}, aged {age}.",
)
TASK = "Code the diagnosis."
KNOBS: dict[str, str] = {
    "lora_r": "16", "lora_alpha": "32", "lora_dropout": "0", "target_modules": "all-linear",
    "modules_to_save": "lm_head,embed_tokens", "learning_rate": "5e-3", "lr_scheduler_type": "cosine",
    "warmup_steps": "10", "max_steps": "150", "max_length": "256", "per_device_train_batch_size": "16",
    "max_new_tokens": "16",
}


def write(path: Path, rows: int = 900, seed: int = 1) -> None:
    """Writes `rows` chats as JSON lines. No two visits are alike, so every held-out row is new to the model."""
    with path.open("w", encoding="utf-8") as file:
        for visit, code in visits(rows, seed):
            turns = [{"role": "user", "content": f"{TASK}\n{visit}"}, {"role": "assistant", "content": code}]
            file.write(json.dumps({"messages": turns}, ensure_ascii=False) + "\n")


def visits(rows: int, seed: int) -> Iterator[tuple[str, str]]:
    """(text, code) pairs, all different, the same for the same seed."""
    chance = random.Random(seed)  # noqa: S311  invented visits, nothing secret
    seen: set[str] = set()
    while len(seen) < rows:
        what, span = chance.choice(list(DIAGNOSES)), chance.choice(list(SPANS))
        name = f"{chance.choice(FIRST)} {chance.choice(LAST)}"
        visit = chance.choice(TEMPLATES).format(name=name, age=chance.randint(18, 90), what=what,
                                                span=f"{chance.choice(COUNTS)} {span}")
        if visit not in seen:
            seen.add(visit)
            yield visit, f"{DIAGNOSES[what]}-{SPANS[span]}"
