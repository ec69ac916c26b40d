"""OpenSSH's server for the lab's node: its configuration, its host key, and the wrapper every session runs in.

Pure text plus two short calls of ssh tools; the process itself is node.py's. It must not read or change the machine's
own ssh configuration.
"""
from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ..errors import Refused

SHELL = "/bin/sh"


def find() -> str | None:
    """sshd by absolute path, as it wants to be called; it often lies outside an ordinary PATH."""
    path = os.pathsep.join(filter(None, (os.environ.get("PATH"), os.defpath, "/usr/sbin", "/usr/local/sbin", "/sbin")))
    found = shutil.which("sshd", path=path)
    return str(Path(found).resolve()) if found else None


def host_key(folder: Path) -> str:
    """Make the node's own ed25519 key once; the public line "ssh-ed25519 AAAA…" without comment."""
    from cryptography.hazmat.primitives import serialization as ser
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    path, public = folder / "host_key", folder / "host_key.pub"
    if not (path.exists() and public.exists()):
        key = Ed25519PrivateKey.generate()
        path.touch(mode=0o600)
        path.write_bytes(key.private_bytes(ser.Encoding.PEM, ser.PrivateFormat.OpenSSH, ser.NoEncryption()))
        public.write_bytes(key.public_key().public_bytes(ser.Encoding.OpenSSH, ser.PublicFormat.OpenSSH))
    return public.read_text().strip()


def config(folder: Path, port: int, user: str, pam: bool) -> str:
    """Loopback only, keys only, one command only, nothing forwarded, no terminal.

    HOME is the node's own folder for the moment until the wrapper runs: sshd starts it through the caller's login shell,
    which would run the caller's start files first."""
    return f"""# The lab's node. Nothing of the machine's own ssh server is used or changed.
ListenAddress 127.0.0.1
Port {port}
HostKey "{folder / 'host_key'}"
AuthorizedKeysFile "{folder / 'authorized_keys'}"
ForceCommand {shlex.quote(str(folder / 'session'))}
SetEnv "HOME={folder}"
AllowUsers {user}
AuthenticationMethods publickey
PubkeyAuthentication yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UsePAM {'yes' if pam else 'no'}
StrictModes no
PermitTTY no
DisableForwarding yes
AllowTcpForwarding no
AllowAgentForwarding no
X11Forwarding no
PermitTunnel no
PermitUserEnvironment no
PermitUserRC no
PrintMotd no
PrintLastLog no
UseDNS no
PidFile none
LogLevel ERROR
MaxStartups 30:30:100
MaxSessions 20
ClientAliveInterval 15
ClientAliveCountMax 4
"""


def wrapper(home: Path, environment: Mapping[str, str], uid: int | None) -> str:
    """What every session runs: an empty environment but ours, the sandbox as home, and as root another user first."""
    words = [_tool("env"), "-i", *(f"{k}={v}" for k, v in environment.items())]
    if uid is not None:
        words += [_tool("setpriv"), f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--no-new-privs",
                  "--bounding-set=-all", "--inh-caps=-all"]
    command = " ".join(shlex.quote(w) for w in (*words, SHELL, "-c"))
    return f"""#!{SHELL}
[ -n "$SSH_ORIGINAL_COMMAND" ] || exit 1
cd {shlex.quote(str(home))} || exit 1
umask 077
exec {command} "$SSH_ORIGINAL_COMMAND"
"""


def prepare(sshd: str, config_file: Path, root: bool) -> None:
    """Test the configuration; as root, make the empty folder that sshd separates itself into. Refused with its words."""
    for _ in range(2):
        test = subprocess.run([sshd, "-t", "-f", str(config_file)], capture_output=True, text=True, timeout=20,
                              stdin=subprocess.DEVNULL)
        if test.returncode == 0:
            return
        missing = re.search(r"Missing privilege separation directory: (\S+)", test.stderr)
        if not (root and missing):
            break
        Path(missing.group(1)).mkdir(mode=0o755, exist_ok=True)
    raise Refused(f"sshd does not accept the lab's configuration: {test.stderr.strip()[:200]}")


def root_is_locked() -> bool:
    """Without PAM sshd refuses an account whose password is locked, keys or not."""
    try:
        line = next(x for x in Path("/etc/shadow").read_text().splitlines() if x.startswith("root:"))
    except (OSError, StopIteration):
        return False
    return line.split(":")[1].startswith("!")


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise Refused(f"{name} is not on this machine; the lab's node needs it", hint="install util-linux")
    return found
