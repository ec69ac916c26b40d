"""SSH signatures: stock OpenSSH and we accept each other's, and nothing that is not exactly one."""
from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.audit.sshsig import (
    NAMESPACE,
    BadSignature,
    PublicKey,
    allowed_signers,
    load_key,
    public_key,
    sign,
    trusted_signers,
    verify,
)
from orchestrator.errors import BadInput
from tests.fakes.audited import SECRET, SIGNER

pytestmark = pytest.mark.evidence
OTHER = Ed25519PrivateKey.from_private_bytes(b"o" * 32)
LINE = SIGNER.line


def stock(tmp_path: Path, message: bytes, signature: bytes, signers: str, namespace: str = NAMESPACE) -> bool:
    """What `ssh-keygen -Y verify` says."""
    (tmp_path / "signers").write_text(signers)
    (tmp_path / "sig").write_bytes(signature)
    done = subprocess.run(["ssh-keygen", "-Y", "verify", "-f", str(tmp_path / "signers"), "-I", "me", "-n", namespace,
                           "-s", str(tmp_path / "sig")], input=message, capture_output=True, check=False)
    return done.returncode == 0


def pem(key: Ed25519PrivateKey) -> bytes:
    return key.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption())


class TestStock:
    @pytest.mark.parametrize("message", [b"", b"{}", b"x" * 100_000, bytes(range(256))])
    def test_it_accepts_ours(self, tmp_path: Path, message: bytes) -> None:
        signature = sign(SECRET, message)
        assert stock(tmp_path, message, signature, f'me namespaces="{NAMESPACE}" {LINE}\n')
        assert not stock(tmp_path, message + b" ", signature, f"me {LINE}\n")
        assert not stock(tmp_path, message, signature, f"me {public_key(OTHER).line}\n")
        assert not stock(tmp_path, message, signature, f"me {LINE}\n", namespace="file")

    def test_we_accept_its(self, tmp_path: Path) -> None:
        (tmp_path / "key").write_bytes(pem(SECRET))
        (tmp_path / "key").chmod(0o600)
        (tmp_path / "report.json").write_bytes(b"{}")
        subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-f", str(tmp_path / "key"), "-n", NAMESPACE,
                        str(tmp_path / "report.json")], check=True, capture_output=True)
        theirs = (tmp_path / "report.json.sig").read_bytes()
        assert verify(theirs, b"{}") == SIGNER and theirs == sign(SECRET, b"{}")

    def test_it_shows_the_same_fingerprint(self, tmp_path: Path) -> None:
        (tmp_path / "key.pub").write_text(LINE)
        shown = subprocess.run(["ssh-keygen", "-l", "-f", str(tmp_path / "key.pub")], capture_output=True, text=True,
                               check=True).stdout
        assert SIGNER.fingerprint in shown.split()


class TestVerify:
    def test_the_key_that_signed(self) -> None:
        assert verify(sign(SECRET, b"a"), b"a") == SIGNER and verify(sign(OTHER, b"a"), b"a") == public_key(OTHER)

    @pytest.mark.parametrize("namespace", ["file", "sealtune-report ", ""])
    def test_another_namespace(self, namespace: str) -> None:
        with pytest.raises(BadSignature):
            verify(sign(SECRET, b"a", namespace), b"a")

    def test_every_flipped_byte(self) -> None:
        good = sign(SECRET, b"a report")
        for at in range(len(good)):
            for mask in (1, 0x80):
                with pytest.raises(BadSignature):
                    verify(good[:at] + bytes([good[at] ^ mask]) + good[at + 1:], b"a report")

    @pytest.mark.parametrize("spoil", [lambda s: s + b"\n", lambda s: s[:-1], lambda s: b"\n" + s, lambda s: s * 2,
                                       lambda s: s.replace(b"\n", b"\r\n"), lambda s: b"", lambda s: s[:40],
                                       lambda s: s.replace(b"-----END", b"\n-----END")])
    def test_another_spelling(self, spoil) -> None:  # type: ignore[no-untyped-def]
        with pytest.raises(BadSignature):
            verify(spoil(sign(SECRET, b"a")), b"a")

    @settings(max_examples=200)
    @given(st.binary(max_size=300))
    def test_noise_is_no_signature(self, noise: bytes) -> None:
        with pytest.raises(BadSignature):
            verify(noise, b"a")


class TestKeys:
    def test_only_ed25519(self) -> None:
        assert load_key(pem(SECRET)).private_bytes_raw() == SECRET.private_bytes_raw()
        from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
        other = generate_private_key(SECP256R1()).private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH,
                                                                form.NoEncryption())
        with pytest.raises(ValueError, match="Ed25519"):
            load_key(other)

    @pytest.mark.parametrize("line", ["", "ssh-ed25519", "ssh-ed25519 AAAA", "ssh-rsa " + LINE.split()[1],
                                      "ssh-ed25519 !" + LINE.split()[1], LINE[:-4]])
    def test_not_a_key(self, line: str) -> None:
        with pytest.raises(ValueError, match="not an ssh-ed25519 key"):
            PublicKey.parse(line)

    def test_a_comment_does_not_matter(self) -> None:
        assert PublicKey.parse(LINE + " me@laptop") == SIGNER


class TestAllowedSigners:
    """One file, two readers: where stock OpenSSH accepts a signature, so do we, and the other way round."""

    @pytest.mark.parametrize(("text", "trusted"), [
        ("me {key}", True),
        ("# a comment\n\nme {key} bob's laptop\n", True),
        ('me namespaces="sealtune-report" {key}', True),
        ('me namespaces="file,sealtune-*" {key}', True),
        ('me namespaces="file" {key}', False),
        ('me namespaces="sealtune" {key}', False),
        ("me {other}", False),
        ("me {other}\nme {key}", True),
        ("me ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTY= x\nme {key}", True),
        ('me,you {key}', True),
        ("", False),
    ])
    def test_as_stock_reads_it(self, tmp_path: Path, text: str, trusted: bool) -> None:
        text = text.format(key=LINE, other=public_key(OTHER).line)
        assert (SIGNER in allowed_signers(text.encode())) is trusted
        if "ecdsa" not in text:
            assert stock(tmp_path, b"a", sign(SECRET, b"a"), text) is trusted

    @pytest.mark.parametrize("text", ["me", "me ssh-ed25519", "me ssh-ed25519 AAAA", "me cert-authority {key}",
                                      'me valid-before="20200101" {key}', "{key}", 'me "unclosed {key}',
                                      "me namespaces=sealtune-report {key}"])
    def test_a_faulty_line_is_named(self, text: str) -> None:
        with pytest.raises(BadInput, match="line 2"):
            allowed_signers(b"# first\n" + text.format(key=LINE).encode())

    @pytest.mark.parametrize("end", ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
    def test_a_comment_hides_no_line(self, tmp_path: Path, end: str) -> None:
        """What an editor shows as one line of comment is one, here as in OpenSSH."""
        text = f"# a comment{end}me {LINE}\n"
        assert allowed_signers(text.encode()) == frozenset()
        assert not stock(tmp_path, b"a", sign(SECRET, b"a"), text)

    def test_a_public_key_file_will_do(self) -> None:
        for text in (LINE, f"{LINE}\n", f"{LINE} bob@laptop\n"):
            assert trusted_signers(text.encode()) == {SIGNER}
        assert trusted_signers(f"me {LINE}\n".encode()) == {SIGNER}
        for text in ("ssh-ed25519 AAAA\n", f"{LINE}\nme {LINE}\n", "x"):
            with pytest.raises(BadInput):
                trusted_signers(text.encode())


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200) | st.binary(max_size=120).map(lambda tail: f"{LINE[:60]}".encode() + tail))
def test_any_file_of_signers_is_read_or_refused(data: bytes) -> None:
    try:
        assert all(key.raw() for key in trusted_signers(data))
    except BadInput as problem:
        assert problem.hint
