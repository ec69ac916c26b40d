"""The user's own server, tried before anything is begun: does it let us in, does our agent run there, what is it?

One login, one question, nothing left behind: no lease is named, no file made. What is refused is told with the user and
the keys that were offered, since only the person can mend it; it must not try again by itself.
"""
from __future__ import annotations

import threading
from pathlib import Path

from ..domain.evidence import NO_GPU
from ..domain.hostkey import fingerprint
from ..domain.lease import Access
from ..domain.text import clean
from ..errors import BadInput, Refused, Unreachable
from .channel import AgentChannel, Broken, NotAnAgent, Refusal
from .client import probe
from .connection import AGENT, Dialer, Pace, Unreached
from .frames import FrameError
from .probes import rules, system
from .transport import SafeTransport, close_quietly

SHOWN_KEYS = 5
PACE = Pace(connect=8, banner=8, auth=12)


def look_in(access: Access, archive: bytes, pace: Pace = PACE) -> str:
    """What stands there, in one line for people. Refused: it does not let us in, or cannot run the agent; BadInput: the
    key file cannot be used; Unreachable, HostKeyChanged. ≤ 30 s."""
    transport = _logged_in(access, pace)
    try:
        outputs = probe(AgentChannel(transport, archive, pace), system.NAMES)
    except NotAnAgent as error:
        raise Refused(f"the server {access.host} cannot be used: {error}",
                      hint="it needs Linux and a python3 of at least 3.8 on its PATH") from error
    except Refusal as error:
        raise Refused(f"the server {access.host} cannot be used: {error}", hint="sealtune rentals") from error
    except (Broken, FrameError) as error:
        raise Unreachable(f"the server {access.host} let us in, but no agent answers: {error}",
                          hint="its account needs a plain shell that prints nothing for commands") from error
    finally:
        close_quietly(transport.close)
    return hardware(rules.views(outputs))


def hardware(v: rules.Views) -> str:
    """One line: the GPUs as they show themselves, or that there is none."""
    if v.unreadable:
        return f"nvidia-smi cannot be read: {v.unreadable}"
    names = [f"{gpu.name}, {round(gpu.memory_mib / 1024)} GiB" for gpu in v.gpus]
    if not names:
        return NO_GPU
    return names[0] if len(names) == 1 else f"{len(names)} GPUs, the first: {names[0]}"


def _logged_in(access: Access, pace: Pace) -> SafeTransport:
    keys = offered(access.identity)
    try:
        return Dialer(access, b"", threading.BoundedSemaphore(1), pace).dial()
    except Unreached as error:
        if not error.refused:
            raise Unreachable(f"the server {access.host}:{access.port}: {error}",
                              hint=f"try: ssh -p {access.port} {access.user}@{access.host}") from error
        raise Refused(f"{access.host} does not let {access.user} in{why(error)}; offered: {keys}",
                      hint=f"`user:` and `identity:` of `ssh:` say who and by which key; {access.user} on the server needs "
                           "that key in .ssh/authorized_keys") from error


def why(error: Unreached) -> str:
    return ": the key file has a passphrase, so an ssh agent must hold the key" if "passphrase" in str(error) else ""


def offered(identity: str) -> str:
    """Which keys we log in with, as a person would know them. BadInput for a file that cannot be read."""
    import paramiko

    if identity == AGENT:
        agent = paramiko.Agent()
        try:
            keys = [_shown(key) for key in agent.get_keys()]
        finally:
            agent.close()
        more = f" and {len(keys) - SHOWN_KEYS} more" if len(keys) > SHOWN_KEYS else ""
        return f"the ssh agent's {', '.join(keys[:SHOWN_KEYS])}{more}" if keys else "no key at all (no agent holds one)"
    try:
        Path(identity).read_bytes()
        return f"{identity} ({_shown(paramiko.PKey.from_path(identity))})"
    except OSError as problem:
        raise BadInput(f"identity {identity}: {(problem.strerror or 'cannot be read').lower()}",
                       hint="name a private key file that you can read") from problem
    except Exception:  # noqa: BLE001 why: a key of a kind that the library cannot show is still offered, by its file
        return identity


def _shown(key: object) -> str:
    blob, comment = getattr(key, "get_base64", str)(), clean(getattr(key, "comment", "") or "", 40)
    return f"{fingerprint(f'key {blob}')} {comment}".strip()
