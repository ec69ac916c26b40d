"""One lease on a node, up to a started rehearsal: what the suites of keeper and wipe begin with."""
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.payload.talk import LEASE, Agent, Node
from tests.payload.workshop import Workshop, chat

JOB = LEASE + "/train"
NONCE = os.urandom(6).hex()              # another suite on this machine looks for the decoys of its own
ROWS = [chat(f"what is {n}", f"it is {n}") for n in range(8)] + [chat("what is x", "it is x", "held_out")]
SECRET_WORDS = b"AGE-SECRET-KEY-1"


class Lease:
    """A node, armed, with the payload installed and the sealed rows in place."""

    def __init__(self, node: Node, desk: Path, **arm: Any) -> None:
        desk.mkdir()
        (desk / "no-base").mkdir()
        self.node, self.desk = node, desk
        self.shop = Workshop(desk, desk / "unused.zip")
        node.prepare_environment()
        self.agent: Agent = node.armed(**arm)
        node.install(self.agent)
        self._rows = self.shop.ship(ROWS)
        node.put(self.agent, "dataset.age", (desk / "dataset.age").read_bytes())

    def start(self, knobs: dict[str, str] | None = None, job_id: str = JOB, **changes: Any) -> dict[str, Any]:
        spec = self.shop.spec(self._rows, self.desk / "no-base", knobs or {"rehearsal_step_seconds": "0.01"})
        spec.update({"engine": "rehearsal", "job_id": job_id, **changes})
        secret = str(self.shop.node).encode() + b"\n"
        return dict(self.agent.ask("start", {"spec": spec, "variant": ""}, secret).header)

    def limits(self, **changes: int) -> dict[str, int]:
        return {"steps": 10_000, "seconds": 600, "artifact_bytes": 1 << 28, "records": 100_000, **changes}

    def follow(self, agent: Agent | None = None, offset: int = 0) -> tuple[str, list[dict[str, Any]]]:
        """(how, every record) once the job has ended."""
        asked, lines = agent or self.agent, b""
        while True:
            reply = asked.ask("records", {"job_id": JOB, "offset": offset + len(lines), "wait": 2, "beat": None})
            lines += reply.body
            if reply.header["state"] == "ended" and reply.header["offset"] == reply.header["size"]:
                return reply.header["how"], [json.loads(line) for line in lines.splitlines()]

    def wait_for(self, kind: str, agent: Agent | None = None) -> None:
        """Until a record of this kind is there."""
        seen = b""
        while f'"kind":"{kind}"'.encode() not in seen:
            asked = {"job_id": JOB, "offset": len(seen), "wait": 5, "beat": None}
            reply = (agent or self.agent).ask("records", asked)
            seen += reply.body
            assert reply.header["state"] == "running" or reply.body, f"the job ended without {kind}"

    def home_copy(self, name: str, agent: Agent | None = None) -> bytes:
        data = b""
        while True:
            reply = (agent or self.agent).ask("get", {"name": name, "offset": len(data), "length": 1 << 20})
            data += reply.body
            if len(data) >= reply.header["size"]:
                return data

    def wipe(self, agent: Agent | None = None, keep: tuple[str, ...] = (), seconds: int = 60, order_id: str = "wipe-1",
             canaries: bytes = b"a-canary-that-is-nowhere-else") -> tuple[dict[str, Any], dict[str, Any]]:
        """(header, document)."""
        order = {"order_id": order_id, "keep": list(keep), "seconds": seconds, "nonce": NONCE}
        reply = (agent or self.agent).ask("wipe", {"order": order}, canaries)
        return dict(reply.header), json.loads(reply.body)
