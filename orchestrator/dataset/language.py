"""Which language a text is in, roughly: by its small words, or by its script. For a table, never for a decision."""
from __future__ import annotations

import re
from collections.abc import Sequence

SMALL = {
    "English": "the of and to in is that it for was on are with as at be this have from or an by not you what how can i a",
    "German": "der die und das ist nicht ein eine den von mit sich des auf für im dem zu es sind wie werden ich sie wird",
    "French": "le la les des et est une un que pour dans qui pas sur au avec ce il sont par plus vous du je en",
    "Spanish": "el la los las de y en que es un una por con para no se del su al como más lo qué",
    "Italian": "il la di che è e un una per non sono del con si da le gli dei della come più",
    "Portuguese": "o os de e que é um uma para não com em do da as por mais no na se como",
    "Dutch": "de het een en van is dat in op te met voor niet zijn er aan ook als die hoe",
    "Polish": "i w nie na się to jest z do że co jak o dla po od przez są",
}
WORDS = {name: frozenset(words.split()) for name, words in SMALL.items()}
SCRIPTS = (("Japanese", re.compile(r"[\u3040-\u30ff]")), ("Korean", re.compile(r"[\uac00-\ud7af]")),
           ("Chinese", re.compile(r"[\u3400-\u9fff]")), ("Cyrillic script", re.compile(r"[\u0400-\u04ff]")),
           ("Greek", re.compile(r"[\u0370-\u03ff]")), ("Arabic script", re.compile(r"[\u0600-\u06ff]")),
           ("Hebrew", re.compile(r"[\u0590-\u05ff]")), ("Thai", re.compile(r"[\u0e00-\u0e7f]")),
           ("Devanagari script", re.compile(r"[\u0900-\u097f]")))
UNKNOWN = "not told"


def language(text: str, words: Sequence[str]) -> str:
    """A language's or a script's name; UNKNOWN where too little speaks for one."""
    if not text.isascii():
        sample = text[:2000]
        for name, letters in SCRIPTS:
            if len(letters.findall(sample)) * 4 > len(sample):
                return name
    seen = words[:200]
    scores = {name: sum(word in small for word in seen) for name, small in WORDS.items()}
    best = max(scores, key=scores.__getitem__)
    return best if scores[best] >= 2 and scores[best] * 12 >= len(seen) else UNKNOWN
