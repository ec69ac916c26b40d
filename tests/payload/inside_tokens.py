"""Runs inside the training environment: how rows become ids and labels. Prints one JSON object; asserts nothing."""
from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

REPOSITORY, BASE = sys.argv[1:3]
sys.path.insert(0, REPOSITORY)

from transformers import AutoTokenizer  # noqa: E402  the repository's own modules are found only now

from remote_payload import data, faults  # noqa: E402

CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "gout attack since 4 weeks"},
        {"role": "assistant", "content": "M10-R"}, {"role": "user", "content": "since 4 days"},
        {"role": "assistant", "content": "M10-B"}]
MARKS = ("{% generation %}", "{% endgeneration %}")
FORGETFUL = "{% for m in messages %}{% if loop.last or m['role'] != 'assistant' %}<|{{ m['role'] }}|>{{ m['content'] }}" \
            "<|end|>{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"


def answer(tokenizer: Any, row: data.Tokenised) -> str:
    return str(tokenizer.decode([label for label in row["labels"] if label != data.IGNORED]))


def failure(rows: data.Rows, tokenizer: Any, longest: int) -> str:
    try:
        data.tokenise(rows, rows.train, tokenizer, longest)
    except faults.Fault as fault:
        return type(fault).__name__
    return ""


def main() -> None:
    tokenizer = AutoTokenizer.from_pretrained(Path(BASE), local_files_only=True)
    chats = data.Rows("messages", [{"messages": CHAT}, {"messages": CHAT[1:3]}], [])
    texts = data.Rows("text", [{"text": "gout attack"}], [])
    marked = data.tokenise(chats, chats.train, tokenizer, 256)
    whole_length = len(marked[0]["input_ids"])
    said: dict[str, Any] = {
        "answers": [answer(tokenizer, row) for row in marked],
        "text": answer(tokenizer, data.tokenise(texts, texts.train, tokenizer, 256)[0]),
        "cut": [len(row["input_ids"]) for row in data.tokenise(chats, chats.train, tokenizer, whole_length - 1)],
        "dropped": len(data.tokenise(chats, chats.train, tokenizer, 30)),
        "none fits": failure(chats, tokenizer, 3),
        "prompt": tokenizer.decode(data.prompts(chats.train, tokenizer)[1]),
    }
    template = tokenizer.chat_template
    for mark in MARKS:
        template = template.replace(mark, "")
    tokenizer.chat_template = template
    said["same by prefix"] = data.tokenise(chats, chats.train, tokenizer, 256) == marked
    tokenizer.chat_template = FORGETFUL
    said["forgetful template"] = failure(chats, tokenizer, 256)
    tokenizer.chat_template = None
    said["no template"] = failure(chats, tokenizer, 256)
    sys.stdout.write(json.dumps({**said, "length": whole_length}))


main()
