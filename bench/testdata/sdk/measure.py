"""Measures the Python SDK against the daemon of AGENTBOX_URL and prints milliseconds as JSON: measure.py call|run COUNT."""

import json
import os
import sys
import time
from collections.abc import Callable

import httpx

from agentbox import Agentbox, Sandbox, SandboxConfig


def timed(into: list[float], work: Callable[[], object]) -> None:
    began = time.perf_counter()
    work()
    into.append((time.perf_counter() - began) * 1000)


what, count = sys.argv[1], int(sys.argv[2])
url, key = os.environ["AGENTBOX_URL"], os.environ["AGENTBOX_KEY"]
ours: list[float] = []
raw: list[float] = []
with Agentbox(url, key) as client, httpx.Client(headers={"Authorization": f"Bearer {key}"}, trust_env=False, timeout=60) as bare:
    if what == "call":
        with client.spaces.create(runtime="nano") as space:
            for n in range(-20, count):
                timed(raw if n >= 0 else [], lambda: bare.get(f"{url}/v1/spaces/{space.id}").raise_for_status().json())
                timed(ours if n >= 0 else [], lambda: client.spaces.get(space.id))
    else:
        with Sandbox(SandboxConfig(runtime="nano"), client=client) as box:
            body = {"protocolVersion": "1.0", "operations": [{"type": "shell", "command": "python3 -c 'print(1)'"}]}
            runs = f"{url}/v1/spaces/{box.space().id}/runs"

            def without() -> None:
                done = bare.post(runs, json=body).raise_for_status().json()
                assert done["events"][0]["stdout"] == "1\n", done

            for n in range(-3, count):
                timed(raw if n >= 0 else [], without)
                timed(ours if n >= 0 else [], lambda: box.run("print(1)"))
print(json.dumps({"ours": ours, "raw": raw}))
