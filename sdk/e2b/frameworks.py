"""Agents of frameworks that work in a sandbox of E2B, unmodified, against a daemon of Agentbox. A scripted vendor plays the model.

``frameworks.py openai-agents|deepagents|smolagents`` runs the cases of one framework.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tarfile
import tempfile
import threading
import time
import traceback
import urllib.request
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from vendor import Step, Vendor

frameworks: dict[str, list] = {}


def case(framework: str):
    def add(f):
        frameworks.setdefault(framework, []).append(f)
        return f

    return add


def same(got, want):
    assert got == want, f"got {got!r}, want {want!r}"


def ask(method: str, path: str, body: Any = None) -> Any:
    """Asks /v1 of the daemon, which is behind the surface for E2B."""
    base, key = os.environ["E2B_API_URL"].removesuffix("/e2b"), bytes.fromhex(os.environ["E2B_API_KEY"].removeprefix("e2b_")).decode()
    r = urllib.request.Request(base + path, method=method, data=json.dumps(body).encode() if body else None)
    r.add_header("Authorization", "Bearer " + key)
    r.add_header("Content-Type", "application/json")
    return json.load(urllib.request.urlopen(r))


def commands_of(space: str) -> list[str]:
    """The commands of a space that the gate decided, as the log has them."""
    events = ask("GET", f"/v1/events?space_id={space}&event_type=tool.invoked&limit=200")["events"]
    return [e["data"]["input"]["command"] for e in events if e["data"]["tool_name"] == "shell"]


@contextmanager
def person(*allows: str):
    """Answers the questions to a person: approves those whose title begins with one of the texts, and denies all others."""
    stop, asked = threading.Event(), []

    def work() -> None:
        while not stop.wait(0.1):
            for a in ask("GET", "/v1/approvals?status=pending")["approvals"]:
                asked.append(a["title"])
                decision = "approve" if a["title"].startswith(allows) else "deny"
                ask("POST", f"/v1/approvals/{a['approval_id']}/decide", {"decision": decision})

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield asked
    finally:
        stop.set()
        thread.join(10)


# The framework sets the modes of the files that it brings, and policy asks a person about that.
MODES = "run a command: chmod 0755 /workspace/data/"
# It installs a program of its own before it resumes a session elsewhere, and sets the mode of that, too.
RESUMING = ("run a command: sh -lc 'mkdir -p notes && ", "run a command: sh -c '# INSTALL_RUNTIME_HELPER_V1")


# The sandbox agent of OpenAI's Agents SDK, with its client for E2B.

PATCH = """*** Begin Patch
*** Add File: report.py
+import csv
+rows = list(csv.DictReader(open("data/sales.csv")))
+print("total:", sum(int(r["amount"]) for r in rows))
*** End Patch
"""
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="


def sandbox_agent(vendor: Vendor, **given: Any):
    from agents import ModelSettings, OpenAIResponsesModel
    from agents.sandbox import Manifest, SandboxAgent
    from agents.sandbox.entries import File
    from openai import AsyncOpenAI

    return SandboxAgent(
        name="analyst",
        model=OpenAIResponsesModel(model="scripted", openai_client=AsyncOpenAI(base_url=vendor.url + "/v1", api_key="none", max_retries=0)),
        model_settings=ModelSettings(),
        default_manifest=Manifest(entries={"data/sales.csv": File(content=b"day,amount\nmon,40\ntue,2\n")}),
        **given,
    )


def options(**given: Any):
    from agents.extensions.sandbox.e2b import E2BSandboxClientOptions

    return E2BSandboxClientOptions(sandbox_type="e2b", timeout=300, metadata={"suite": "openai-agents", "agentbox.policy": "permissive"}, **given)


@case("openai-agents")
def a_sandbox_agent_finishes_a_task():
    from agents import RunConfig, Runner
    from agents.extensions.sandbox.e2b import E2BSandboxClient
    from agents.sandbox import LocalSnapshotSpec, SandboxRunConfig

    script = [
        Step(tool="exec_command", given={"cmd": "ls data && wc -l < data/sales.csv"}),
        Step(tool="apply_patch", given=PATCH, after="sales.csv"),
        Step(tool="exec_command", given={"cmd": "python3 report.py | tee report.md", "login": False}, after="report.py"),
        Step(tool="exec_command", given={"cmd": f"echo {DOT} | base64 -d > dot.png; exit 3", "workdir": "data"}, after="total: 42"),
        Step(tool="view_image", given={"path": "data/dot.png"}, after="exited with code 3"),
        Step(text="the total is 42", after="data:image/png;base64," + DOT[:40]),
    ]
    before = {e["event_id"] for e in ask("GET", "/v1/events?event_type=space.created&limit=200")["events"]}
    with person(MODES), Vendor(*script) as vendor, tempfile.TemporaryDirectory() as kept:
        config = RunConfig(sandbox=SandboxRunConfig(client=E2BSandboxClient(), options=options(), snapshot=LocalSnapshotSpec(base_path=Path(kept))))
        done = asyncio.run(Runner.run(sandbox_agent(vendor), "What is the total?", run_config=config))
        same(done.final_output, "the total is 42")
        archives = [p for p in Path(kept).rglob("*") if p.is_file()]
        same(len(archives), 1)
        with tarfile.open(archives[0]) as archive:
            same(archive.extractfile("./report.md").read(), b"total: 42\n")
    made = [e for e in ask("GET", "/v1/events?event_type=space.created&limit=200")["events"] if e["event_id"] not in before]
    same(len(made), 1)
    assert "chmod 0755 /workspace/data/sales.csv" in commands_of(made[0]["entity_id"]), commands_of(made[0]["entity_id"])
    same(ask("GET", "/v1/spaces/" + made[0]["entity_id"])["status"], "destroyed")


@case("openai-agents")
def a_paused_session_is_the_same_sandbox():
    from agents.extensions.sandbox.e2b import E2BSandboxClient

    async def work() -> None:
        client = E2BSandboxClient()
        made = await client.create(options=options(pause_on_exit=True))
        async with made:
            await made.exec("echo kept > kept.txt")
        again = await client.resume(client.deserialize_session_state(client.serialize_session_state(made.state)))
        async with again:
            same((await again.read(Path("kept.txt"))).read(), b"kept\n")
            same(again.state.sandbox_id, made.state.sandbox_id)

    asyncio.run(work())


@case("openai-agents")
def a_session_goes_on_in_another_sandbox():
    from agents.extensions.sandbox.e2b import E2BSandboxClient
    from agents.sandbox import LocalSnapshotSpec

    async def work(persistence: str, kept: str) -> None:
        client = E2BSandboxClient()
        made = await client.create(snapshot=LocalSnapshotSpec(base_path=Path(kept)), options=options(workspace_persistence=persistence))
        async with made:
            await made.exec("mkdir -p notes && echo kept > notes/kept.txt && ln -s kept.txt notes/link && echo run > run.sh && chmod 0755 run.sh")
        again = await client.resume(client.deserialize_session_state(client.serialize_session_state(made.state)))
        async with again:
            assert again.state.sandbox_id != made.state.sandbox_id
            same((await again.read(Path("notes/kept.txt"))).read(), b"kept\n")
            same((await again.exec("cat notes/link && stat -c %a run.sh")).stdout, b"kept\n755\n")

    for persistence in ("tar", "snapshot"):
        with tempfile.TemporaryDirectory() as kept, person(*RESUMING):
            asyncio.run(asyncio.wait_for(work(persistence, kept), 120))


@case("openai-agents")
def a_denied_command_ends_for_the_agent():
    from agents import RunConfig, Runner
    from agents.extensions.sandbox.e2b import E2BSandboxClient
    from agents.sandbox import SandboxRunConfig

    script = [
        Step(tool="exec_command", given={"cmd": "sudo true"}),
        Step(tool="exec_command", given={"cmd": "rm -r data"}, after="exited with code 126"),
        Step(text="neither was done", after="exited with code 126"),
    ]
    with person(MODES) as asked, Vendor(*script) as vendor:
        config = RunConfig(sandbox=SandboxRunConfig(client=E2BSandboxClient(), options=options()))
        done = asyncio.run(Runner.run(sandbox_agent(vendor), "Remove the data.", run_config=config))
        same(done.final_output, "neither was done")
        assert any("rm -r data" in title for title in asked), asked
        assert "sudo" in vendor.conversation.results[1], vendor.conversation.results


# The code agent of smolagents, with its executor for E2B. It sends pip install as a line of a notebook before it runs anything.


@case("smolagents")
def a_code_agent_finishes_a_task():
    from smolagents import CodeAgent, LogLevel, OpenAIServerModel

    script = [
        Step(text="Thought: I add them.\n<code>\nimport numpy\ntotal = int(numpy.sum([40, 2]))\nprint('total:', total)\n</code>"),
        Step(text="Thought: I write it down.\n<code>\nopen('report.md', 'w').write(f'{total}')\nraise_it\n</code>", after="total: 42"),
        Step(text="Thought: I know it.\n<code>\nfinal_answer(total)\n</code>", after="NameError"),
    ]
    for policy in ("standard", "permissive"):
        with Vendor(*script) as vendor:
            model = OpenAIServerModel(model_id="scripted", api_base=vendor.url + "/v1", api_key="none")
            given = {"timeout": 300, "metadata": {"agentbox.policy": policy}}
            with CodeAgent(
                tools=[], model=model, executor_type="e2b", executor_kwargs=given, additional_authorized_imports=["numpy"], max_steps=4,
                verbosity_level=LogLevel.OFF,
            ) as agent:
                same(agent.run("What is 40 + 2?"), 42)
                same(agent.python_executor.sandbox.files.read("report.md"), "42")
                commands = commands_of(agent.python_executor.sandbox.sandbox_id)
                assert any(c.startswith("pip install") for c in commands) == (policy == "permissive"), commands  # standard denies it


# Deep Agents of LangChain, with its backend for E2B.


def deep_agent(vendor: Vendor, backend: Any):
    from deepagents import create_deep_agent
    from langchain_anthropic import ChatAnthropic

    model = ChatAnthropic(model_name="scripted", base_url=vendor.url, api_key="none", max_retries=0, max_tokens=1000)
    return create_deep_agent(model=model, backend=backend)


HOME = "/home/user"
DEEP = [
    Step(tool="write_file", given={"file_path": HOME + "/sales.csv", "content": "day,amount\nmon,40\ntue,2\n"}),
    Step(tool="execute", given={"command": "awk -F, 'NR > 1 { n += $2 } END { print \"total: \" n }' sales.csv | tee report.md; exit 4"}, after="sales.csv"),
    Step(tool="edit_file", given={"file_path": HOME + "/report.md", "old_string": "total", "new_string": "sum"}, after="42"),
    Step(tool="grep", given={"pattern": "sum", "path": HOME}, after="report.md"),
    Step(tool="glob", given={"pattern": "*.md", "path": HOME}, after="report.md"),
    Step(tool="ls", given={"path": HOME}, after="report.md"),
    Step(tool="read_file", given={"file_path": HOME + "/report.md"}, after="sales.csv"),
    Step(text="the sum is 42", after="sum: 42"),
]


@case("deepagents")
def a_deep_agent_finishes_a_task():
    from e2b import Sandbox
    from langchain_e2b import E2BSandbox

    with Sandbox.create(timeout=300, metadata={"agentbox.policy": "permissive"}) as box, Vendor(*DEEP) as vendor:
        done = deep_agent(vendor, E2BSandbox(sandbox=box)).invoke({"messages": [{"role": "user", "content": "What is the total?"}]})
        same(done["messages"][-1].text, "the sum is 42")
        same(box.files.read("report.md"), "sum: 42\n")
        assert any("awk" in c for c in commands_of(box.sandbox_id))


@case("deepagents")
def an_asynchronous_deep_agent_does_so_too():
    from e2b import AsyncSandbox
    from langchain_e2b import AsyncE2BSandbox

    async def work() -> None:
        box = await AsyncSandbox.create(timeout=300, metadata={"agentbox.policy": "permissive"})
        with Vendor(*DEEP) as vendor:
            agent = deep_agent(vendor, AsyncE2BSandbox(sandbox=box))
            done = await agent.ainvoke({"messages": [{"role": "user", "content": "What is the total?"}]})
        same(done["messages"][-1].text, "the sum is 42")
        same(await box.files.read("report.md"), "sum: 42\n")
        await box.kill()

    asyncio.run(work())


@case("deepagents")
def files_go_into_its_sandbox_and_come_back():
    from e2b import Sandbox
    from langchain_e2b import E2BSandbox

    with Sandbox.create(timeout=300) as box:
        backend = E2BSandbox(sandbox=box)
        same([r.error for r in backend.upload_files([(HOME + "/raw.bin", bytes(range(256)))])], [None])
        got = backend.download_files([HOME + "/raw.bin", HOME + "/none", HOME])
        same([(r.content, r.error) for r in got], [(bytes(range(256)), None), (None, "file_not_found"), (None, "is_directory")])


def main() -> int:
    framework, chosen = sys.argv[1], sys.argv[2:]
    os.environ.setdefault("OPENAI_AGENTS_DISABLE_TRACING", "1")
    failed = ran = 0
    for f in frameworks[framework]:
        if chosen and f.__name__ not in chosen:
            continue
        ran += 1
        began = time.monotonic()
        try:
            f()
        except BaseException:
            failed += 1
            print(f"FAIL {f.__name__}", flush=True)
            traceback.print_exc(limit=-6)
        if (took := time.monotonic() - began) > 20:
            print(f"slow {f.__name__}: {took:.1f} s", flush=True)
    print(json.dumps({framework: version(framework), "e2b": version("e2b"), "cases": ran, "failed": failed}))
    return 1 if failed or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
