"""The settings page and the place where state is kept."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.errors import BadInput
from orchestrator.settings import OpenMarket, Policy, Settings, load_settings, state_dir

ADDRESS = "0x" + "ab" * 20


def test_nothing_written_means_defaults(tmp_path: Path) -> None:
    assert load_settings(tmp_path) == Settings(tmp_path)


def test_a_whole_page(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text(f"""hub: http://127.0.0.1:9000/
open: {{url: "http://127.0.0.1:9001", rpc: "http://127.0.0.1:9002", escrow: "{ADDRESS}", token: "{ADDRESS}",
       chain_id: 31337, keystore: wallet.json}}
policy: {{operator_can_read: true}}
contact_seconds: 30
""")
    settings = load_settings(tmp_path)
    assert settings.hub == "http://127.0.0.1:9000" and settings.policy == Policy(operator_can_read=True)
    assert settings.open == OpenMarket("http://127.0.0.1:9001", ("http://127.0.0.1:9002",), ADDRESS, ADDRESS, 31337,
                                       tmp_path / "wallet.json")
    assert (settings.contact_seconds, settings.silence_seconds) == (30, 43_200)


OPEN = "open: {url: 'https://x', rpc: 'https://y', chain_id: 80002, %s}"


@pytest.mark.parametrize(("text", "told"), [
    ("hubb: x", "settings.yaml:1: hubb: unknown field"),
    ("hub: ftp://x", "settings.yaml:1: hub: must be an address like https://hub.example, not 'ftp://x'"),
    ("hub: https://user@x", "settings.yaml:1: hub: must be an address"),
    ("policy: {operator_can_read: 1}", "settings.yaml:1: policy.operator_can_read: must be true or false, not 1"),
    ("open: {url: 'http://x'}", "settings.yaml:1: open: rpc is missing"),
    (OPEN % "wallet: browser", "settings.yaml:1: open.wallet: browser needs the account"),
    (OPEN % f"account: '0x{'0' * 40}'", "settings.yaml:1: open.account: is not used with a keystore"),
    (OPEN % "wallet: metamask", "settings.yaml:1: open.wallet: must be one of 'keystore' or 'browser'"),
    (OPEN % "wallet: browser, account: me", "settings.yaml:1: open.account: must be an address, 0x and 40 hex digits"),
])
def test_told(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "settings.yaml").write_text(text)
    with pytest.raises(BadInput) as caught:
        load_settings(tmp_path)
    assert str(caught.value).startswith(told)


def test_prices_of_other_places(tmp_path: Path) -> None:
    line = '{where: Somewhere, card: "RTX 4090", per_hour: "0.35 USD", date: "2026-12-01"}'
    (tmp_path / "settings.yaml").write_text(f"prices: [{line}]")
    price, = load_settings(tmp_path).prices
    assert (price.where, price.card, price.date) == ("Somewhere", "RTX 4090", "2026-12-01")
    assert str(price.rate) == "0.35 USD per hour"
    for wrong, told in (("0.35 USD", "0.35"), ("2026-12-01", "soon"), ("where", "wehre")):
        (tmp_path / "settings.yaml").write_text(f"prices: [{line.replace(wrong, told)}]")
        with pytest.raises(BadInput, match="prices"):
            load_settings(tmp_path)


def test_several_nodes_of_the_chain(tmp_path: Path) -> None:
    page = "open: {{url: 'https://market.example', chain_id: 137, rpc: {}}}"
    (tmp_path / "settings.yaml").write_text(page.format("[https://a.example/key, https://b.example]"))
    at = load_settings(tmp_path).open
    assert at is not None and at.rpc == ("https://a.example/key", "https://b.example")
    for wrong in ("[]", "7", "[https://a.example, 7]", "[[https://a.example]]", "[ftp://a.example]"):
        (tmp_path / "settings.yaml").write_text(page.format(wrong))
        with pytest.raises(BadInput, match=r"open\.rpc: must be an address like https://node.example, or a list of such"):
            load_settings(tmp_path)


def test_the_state_directory_is_for_its_owner_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEALTUNE_HOME", str(tmp_path / "a" / "b"))
    assert state_dir() == tmp_path / "a" / "b"
    assert state_dir().stat().st_mode & 0o777 == 0o700
    state_dir().chmod(0o755)
    assert state_dir().stat().st_mode & 0o777 == 0o700


def test_the_state_directory_without_a_word_from_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEALTUNE_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert state_dir() == tmp_path / "sealtune"
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_dir() == tmp_path / "Library" / "Application Support" / "sealtune"


def test_a_file_in_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_text("")
    monkeypatch.setenv("SEALTUNE_HOME", str(tmp_path / "x"))
    with pytest.raises(BadInput, match="state directory"):
        state_dir()


def test_importing_costs_nothing_heavy() -> None:
    code = "import sys, orchestrator.settings; print({'pydantic', 'ruamel'} & {m.split('.')[0] for m in sys.modules})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
