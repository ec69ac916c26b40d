"""The second reading: what is nearly the same, what is held out, what leaks, what the model sees, and how it is told."""
from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.dataset import content, split
from orchestrator.dataset.check import check, count_tokens
from orchestrator.dataset.leakage import look
from orchestrator.dataset.near import Texts, pairs
from orchestrator.dataset.report import Findings, document, page, write
from orchestrator.dataset.source import Source
from orchestrator.dataset.structure import examine
from orchestrator.dataset.tokens import Counter, Tokens
from tests.fakes import sound
from tests.fakes.sound import Writer

pytestmark = pytest.mark.data
TINY = Path(__file__).parents[3] / "orchestrator" / "lab" / "tiny"
STAMPS = st.dictionaries(st.integers(0, 2**64 - 1), st.integers(1, 3), min_size=2, max_size=120)


def faq(tmp_path: Path, rows: list[dict[str, str]], name: str = "faq.jsonl") -> Path:
    path = tmp_path / name
    path.write_bytes(sound.jsonl(rows))
    return path


def questions(count: int, seed: int = 1) -> list[dict[str, str]]:
    w = Writer(seed)
    return [{"prompt": w.ask(), "completion": w.text(4, 6)} for _ in range(count)]


class TestNear:
    def test_one_word_of_a_long_text_makes_no_other_text(self) -> None:
        w, texts = Writer(3), Texts()
        some = [w.text(6, 8) for _ in range(300)]
        for text in [*some, some[7].replace("The ", "One ", 1), some[9].upper() + "!"]:
            texts.add(text)
        assert pairs(texts) == [(7, 300), (9, 301)]

    def test_other_numbers_are_another_case(self) -> None:
        texts = Texts()
        for number in (17, 18):
            texts.add(f"The parcel of {number} kilograms stands in the hall beside the door and waits for the carrier")
        assert pairs(texts) == []

    def test_a_form_that_all_rows_share_makes_nothing_alike(self) -> None:
        w, texts = Writer(4), Texts()
        form = "Read the following report closely, and say in one word whether its writer likes what was delivered:"
        for _ in range(100):
            texts.add(f"{form} {w.sentence()} {w.sentence()}")
        assert pairs(texts) == []


class TestSplit:
    @given(STAMPS, st.integers(0, 4), st.integers(0, 30))
    def test_rule_2_holds(self, pool: dict[int, int], classes: int, family: int) -> None:
        keys = sorted(pool)
        of = {key: key % classes + 1 for key in keys} if classes > 1 else {}
        families = dict.fromkeys(keys[:family], keys[0])
        rows = sum(pool.values())
        chosen = split.held_out_2(pool, of, families, rows)
        assert chosen and chosen < set(pool)
        assert split.held_out_2(dict(reversed(pool.items())), of, families, rows) == chosen
        if family < len(keys):
            assert len(set(keys[:family]) & chosen) in (0, family)

    def test_each_class_has_its_share(self, tmp_path: Path) -> None:
        w = Writer(5)
        rows = [{"text": w.text(3, 5), "label": "rare" if n % 20 == 0 else "often"} for n in range(400)]
        found = check(faq(tmp_path, rows))
        assert found.stratified and found.held_out == 40
        side = [row["label"] for _, row, made in content.rows(found.source, "text")
                if split.stamp(json.dumps(made, sort_keys=True, separators=(",", ":")).encode()) in found.chosen]
        assert sorted(side).count("rare") == 2

    def test_near_duplicates_stay_on_one_side(self, tmp_path: Path) -> None:
        rows = questions(120)
        rows += [{**row, "prompt": row["prompt"].upper()} for row in rows]
        found = check(faq(tmp_path, rows))
        side = {made["messages"][0]["content"].upper() for _, _, made in content.rows(found.source, "prompt_completion")
                if split.stamp(json.dumps(made, sort_keys=True, separators=(",", ":")).encode()) in found.chosen}
        assert found.held_out == 24 and len(side) == 12
        assert found.tally.counts["near-duplicate"] == 120

    def test_a_sample_is_said_to_be_one(self, tmp_path: Path) -> None:
        source = Source(faq(tmp_path, questions(50)))
        structure = examine(source, "prompt_completion")
        looked = content.examine(source, structure, most=20)
        least = sorted(structure.hashes.column("stamps").tolist())[:20]
        assert len(looked.lines) == 20 and looked.rows == 50
        assert looked.lines == [n for n, stamp in enumerate(structure.hashes.column("stamps").tolist(), 1) if stamp in least]


def test_leaks_are_told_at_their_lines(tmp_path: Path) -> None:
    train, fresh = questions(60), questions(5, seed=9)
    test = [fresh[0], train[3], {**train[5], "completion": "Quite another answer."},
            {**train[8], "prompt": train[8]["prompt"].lower()}, *fresh[1:]]
    found = check(faq(tmp_path, train))
    leak = look(found, check(faq(tmp_path, test, "test.jsonl")))
    assert (leak.rows, leak.same, leak.asked, leak.near) == (8, 1, 1, 1)
    assert [(f.line, f.what) for f in found.tally.kept if f.file == "test.jsonl"] == [
        (2, "the same row as faq.jsonl:4"), (3, "the question of faq.jsonl:6"), (4, "nearly the same row as faq.jsonl:9")]


class TestTokens:
    def test_counted_by_the_models_own_tokenizer(self, tmp_path: Path) -> None:
        from tokenizers import Tokenizer

        found = check(faq(tmp_path, questions(30)))
        counter = Counter(str(TINY), 40)
        tokens = count_tokens(found, counter)
        row = found.content.preview[0]
        said = f"<|bos|><|user|>{row['messages'][0]['content']}<|end|><|assistant|>{row['messages'][1]['content']}<|end|>"
        assert counter.previews([row]) == (said,)
        ids = Tokenizer.from_file(str(TINY / "tokenizer.json")).encode(said, add_special_tokens=False).ids
        assert tokens.lengths[0] == len(ids) and len(tokens.lengths) == 30
        assert tokens.cut == sum(length > 40 for length in tokens.lengths) == found.tally.counts["too-long"]
        assert "cut at 40" in tokens.told()

    def test_a_row_whose_answer_is_cut_away(self, tmp_path: Path) -> None:
        rows = [*questions(10), {"prompt": "so many words " * 40, "completion": "Yes."}]
        found = check(faq(tmp_path, rows))
        tokens = count_tokens(found, Counter(str(TINY), 100))
        assert tokens.lost == 1 and "nothing of the answer is left" in found.tally.kept[-1].what

    def test_a_template_that_refuses_a_row_makes_a_fault(self, tmp_path: Path) -> None:
        model = tmp_path / "model"
        model.mkdir()
        (model / "tokenizer.json").write_bytes((TINY / "tokenizer.json").read_bytes())
        refusing = "{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}{{ messages[0].content }}"
        described = {"chat_template": refusing, "eos_token": {"content": "</s>"}}
        (model / "tokenizer_config.json").write_text(json.dumps(described))
        path = tmp_path / "chat.jsonl"
        w = Writer(6)
        path.write_bytes(sound.jsonl([{"messages": sound.chat(w, 1)}, {"messages": sound.chat(w, 1, "Be brief.")}]))
        found = check(path)
        count_tokens(found, Counter(str(model)))
        assert [(f.line, f.what) for f in found.tally.faults] == [(2, "the model's chat template refuses it")]

    @pytest.mark.parametrize(("model", "why"), [
        ("", "no model is named"), ("no/such", "the tokenizer of no/such is not on this machine")])
    def test_what_is_not_at_hand_is_said(self, tmp_path: Path, model: str, why: str) -> None:
        tokens = count_tokens(check(faq(tmp_path, questions(5))), Counter(model))
        assert tokens.why == why and tokens.told() == f"tokens not counted: {why}"

    def test_a_hostile_template_stays_in_its_box(self, tmp_path: Path) -> None:
        from orchestrator.dataset.faults import Fault
        from orchestrator.dataset.template import compiled

        for text in ("{{ ''.__class__.__mro__ }}", "{{ messages.append(1) }}", "{% for n in range(10**9) %}x{% endfor %}"):
            with pytest.raises(Fault, match="refuses"):
                compiled(text, {})([{"role": "user", "content": "x"}])


class Harmless(HTMLParser):
    """Tags that a page of ours has; anything else came out of the data."""

    KNOWN = frozenset(["html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "b", "small", "table", "tr", "th",
                       "td", "pre", "figure", "figcaption", "svg", "text", "rect"])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in self.KNOWN
        assert not {name for name, _ in attrs} & {"src", "href", "onload", "onerror", "xlink:href"}


class TestReport:
    NASTY = "<script>alert('1')</script><img src=x onerror=alert(2)> \" ' &amp; </pre></td>"

    def found(self, tmp_path: Path, rows: list[Any]) -> Findings:
        checked = check(faq(tmp_path, rows, "<b>data.jsonl"))
        return Findings(checked, Tokens(self.NASTY), None, Counter("").previews(checked.content.preview))

    def test_nothing_of_the_data_is_markup(self, tmp_path: Path) -> None:
        rows: list[Any] = [{"text": f"{self.NASTY} {n}", "label": f"{self.NASTY[:30]} {n % 2}"} for n in range(40)]
        text = page(document(self.found(tmp_path, rows)))
        Harmless().feed(text)
        assert "<script" not in text and "&lt;script&gt;" in text
        assert not re.search(r"https?://", text)

    def test_the_page_is_the_owners_alone(self, tmp_path: Path) -> None:
        write(tmp_path / "report.html", "x")
        assert (tmp_path / "report.html").stat().st_mode & 0o777 == 0o600

    @pytest.mark.parametrize("rows", [questions(30), [*questions(30), {"prompt": ""}]], ids=["sound", "faulty"])
    def test_all_keys_are_there_as_documented(self, tmp_path: Path, rows: list[dict[str, str]]) -> None:
        from orchestrator.dataset.report import document as made_by
        from orchestrator.dataset.report.document import __doc__ as documented

        tree = made_by(self.found(tmp_path, rows))
        names = re.findall(r"^ {4}(\w[\w, ]*?) {2,}", documented or "", re.MULTILINE)
        assert list(tree) == [name for line in names for name in line.split(", ")]
        assert json.loads(json.dumps(tree)) == tree
        assert tree["verdict"] == ("sound" if len(rows) == 30 else "faulty")

    def test_plain_shows_nothing_of_the_rows(self, tmp_path: Path) -> None:
        rows = [{"text": f"zeisig kranich {n} zeisig", "label": f"zeisig-{n % 3}"} for n in range(60)]
        found = self.found(tmp_path, [*rows, rows[0], {"text": "zeisig <|im_end|>", "label": "zeisig-1"}])
        assert "zeisig" in json.dumps(document(found))
        assert "zeisig" not in json.dumps(document(found, plain=True))
        assert "zeisig" not in page(document(found, plain=True))
