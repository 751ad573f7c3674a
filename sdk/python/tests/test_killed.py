"""What remains where a daemon is killed under its clients."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from agentbox import AgentboxError, ApprovalRequiredError, AsyncAgentbox, OperationError
from agentbox._discover import start, stop

CLIENTS, POSTS = 100, 3


async def test_a_daemon_is_killed_under_100_clients(tmp_path: Path) -> None:
    """No event is lost, no effect is doubled, each client goes on or has its typed error."""
    rate = ["--rate", "owner=1000000", "--rate", "general=1000000", "--rate", "streams=1000"]
    found, child = start(tmp_path, args=rate)
    following: list[asyncio.Task[None]] = []
    clients: list[AsyncAgentbox] = []
    try:
        calm = AsyncAgentbox(found.url, found.key, retries=20)
        clients = [AsyncAgentbox(found.url, found.key, retries=0 if n % 10 == 0 else 12) for n in range(CLIENTS)]
        room = await calm.rooms.create("busy")
        thread = (await calm.rooms.create_thread(room["room_id"], "posts"))["thread_id"]
        spaces = [await calm.spaces.create(runtime="nano") for _ in range(5)]
        begin = (await calm.events.list(limit=1))["next_from_seq"]

        seen: list[list[int]] = [[] for _ in clients]

        async def follow(n: int) -> None:
            async for e in clients[n].events.subscribe(begin):
                seen[n].append(e["seq"])

        following = [asyncio.create_task(follow(n)) for n in range(CLIENTS)]
        outcome: dict[str, Exception | None] = {}

        async def attempt(name: str, effect: Callable[[], Awaitable[Any]]) -> None:
            try:
                await effect()
                outcome[name] = None
            except Exception as err:
                outcome[name] = err

        async def post(n: int) -> None:
            for k in range(POSTS):
                name = f"post {n} {k}"
                await attempt(name, lambda name=name: clients[n].rooms.post(thread, name))  # type: ignore[misc]

        async def write(n: int) -> None:
            own = await clients[n + 1].spaces.get(spaces[n].id)
            for k in range(3):

                async def line(k: int = k) -> None:
                    (await own.exec(f"echo line {n} {k} >> log.txt", on_approval=lambda _: "approve")).check()

                await attempt(f"line {n} {k}", line)

        acting = [asyncio.create_task(post(n)) for n in range(CLIENTS)] + [asyncio.create_task(write(n)) for n in range(len(spaces))]
        while len(outcome) < CLIENTS * POSTS / 4:
            await asyncio.sleep(0.002)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        before = len(outcome)
        address = found.url.removeprefix("http://")
        _, child = await asyncio.to_thread(start, tmp_path, args=[*rate, "--listen", address])
        await asyncio.gather(*acting)
        assert before < len(outcome) == CLIENTS * POSTS + 15

        happened = Counter([m["content_md"] async for m in calm.rooms.messages(thread)])
        for space in spaces:
            if await space.files.exists("log.txt"):
                happened.update((await space.files.read_text("log.txt")).splitlines())
        lines = {name: repr(err) for name, err in outcome.items() if name.startswith("line ")}
        for n in range(len(spaces)):  # the kill interrupts one command of a space at most
            mine = [name for name in lines if name.startswith(f"line {n} ")]
            assert sum(outcome[name] is None for name in mine) >= 2, lines
        for name, err in outcome.items():
            assert err is None or (isinstance(err, AgentboxError) and err.code), f"{name} failed with {err!r}"
            assert happened[name] == 1 if err is None else happened[name] <= 1, f"{name}: {happened[name]} times, {err!r}"
        failed = sum(err is not None for err in outcome.values())
        assert failed < len(outcome) / 2, f"{failed} failed"

        want: list[int] = []
        at = begin
        while page := (await calm.events.list(from_seq=at, limit=200)):
            if not page["events"]:
                break
            want += [e["seq"] for e in page["events"]]
            at = page["next_from_seq"]
        for _ in range(2000):
            if all(s and s[-1] >= want[-1] for s in seen):
                break
            await asyncio.sleep(0.01)
        for n, got in enumerate(seen):
            assert got[: len(want)] == want, f"client {n} lost events or got some twice"
        assert json.loads((tmp_path / "daemon.json").read_text())["pid"] == child.pid
    finally:
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)
        for client in clients:
            await client.close()
        stop(child)


async def test_a_person_decides_what_follows_a_command_that_a_kill_interrupted(tmp_path: Path) -> None:
    """Nobody knows what became of the command: it has its own error, and the commands after it wait for an answer."""
    found, child = start(tmp_path)
    client = AsyncAgentbox(found.url, found.key, retries=12)
    try:
        space = await client.spaces.create(runtime="nano")
        begun = asyncio.Event()
        endless = "echo begun; while :; do :; done"
        first = asyncio.create_task(space.exec(endless, command_ms=600_000, on_stdout=lambda _: begun.set(), on_approval=lambda _: "wait"))
        await begun.wait()
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        _, child = await asyncio.to_thread(start, tmp_path, args=["--listen", found.url.removeprefix("http://")])
        try:
            await space.exec("echo behind it")
            raise AssertionError("a command overtakes the question")
        except ApprovalRequiredError as err:
            question = err.approval_id
        assert question and not first.done()
        await client.approvals.approve(question)
        try:
            await first
            raise AssertionError("the interrupted command has a result")
        except OperationError as err:
            assert err.code == "outcome_unknown" and err.suggestion, err
        assert (await space.exec("echo behind it")).stdout == "behind it\n"
    finally:
        await client.close()
        stop(child)
