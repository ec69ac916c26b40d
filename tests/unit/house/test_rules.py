"""The house rules that a machine can check: style, types, layers, sizes, and no unfinished marks."""
from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SOURCES = sorted(p for folder in ("orchestrator", "remote_payload", "tests") for p in (ROOT / folder).rglob("*.py"))
STORIES = {"rental.py", "train.py"}
HARD_MODULE, HARD_FUNCTION, HARD_STORY = 400, 60, 120


def tool(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, check=False)


def test_ruff_is_content() -> None:
    done = tool("ruff", "check", ".")
    assert done.returncode == 0, done.stdout


def test_mypy_strict_is_content() -> None:
    done = tool("mypy")
    assert done.returncode == 0, done.stdout


def test_arrows_point_down_only() -> None:
    done = subprocess.run([sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_sizes_and_marks(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= HARD_MODULE
    assert not re.search(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b", text)
    most = HARD_STORY if path.name in STORIES else HARD_FUNCTION
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < most, node.name
    if "tests" not in path.relative_to(ROOT).parts and text.strip():
        assert ast.get_docstring(ast.parse(text)), "every module says what it is for"
