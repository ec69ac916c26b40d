"""The stand-in for a machine without sshd: the same key, the same wrapper, the same rules, on asyncssh.

For the demo only, and labelled. Output is pumped to its end by hand: the library's own redirection cuts large answers
when a process exits. `python -m orchestrator.lab.asyncssh_node SETTINGS.json`.
"""
from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

PIECE = 64 * 1024


async def serve(port: int, user: str, folder: Path) -> None:
    """Listen on loopback until cancelled."""
    import asyncssh

    class Door(asyncssh.SSHServer):
        """Public keys out of the node's own file, read afresh each time; one user; nothing forwarded."""

        def connection_made(self, conn: Any) -> None:
            self._connection = conn

        def begin_auth(self, username: str) -> bool:
            keys = (folder / "authorized_keys").read_text() if username == user else ""
            self._connection.set_authorized_keys(asyncssh.import_authorized_keys(keys))
            return True

        def public_key_auth_supported(self) -> bool:
            return True

        def password_auth_supported(self) -> bool:
            return False

    async def session(process: Any) -> None:
        process.exit(await _run(process, folder / "session"))

    server = await asyncssh.create_server(
        Door, "127.0.0.1", port, server_host_keys=[str(folder / "host_key")], process_factory=session, encoding=None,
        allow_pty=False, agent_forwarding=False, x11_forwarding=False, keepalive_interval=15)
    await server.wait_closed()


async def _run(process: Any, wrapper: Path) -> int:
    """One exec request in the wrapper; its exit code once both pumps have seen their ends."""
    if not process.command:
        return 1
    child = await asyncio.create_subprocess_exec(
        str(wrapper), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        env={"SSH_ORIGINAL_COMMAND": process.command, "PATH": os.defpath}, start_new_session=True)
    assert child.stdin and child.stdout
    into = asyncio.create_task(_pump(process.stdin, child.stdin))
    await _pump(child.stdout, process.stdout, close=False)
    into.cancel()
    return await child.wait()


async def _pump(source: Any, sink: Any, close: bool = True) -> None:
    try:
        while piece := await source.read(PIECE):
            sink.write(piece)
            await sink.drain()
    except (OSError, asyncio.IncompleteReadError):
        return                           # one side is gone; the other one notices by itself
    finally:
        if close:
            sink.close()


def main(argv: list[str]) -> int:
    settings = json.loads(Path(argv[1]).read_text())
    asyncio.run(serve(settings["port"], settings["user"], Path(settings["folder"])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
