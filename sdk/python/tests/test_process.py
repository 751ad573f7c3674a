"""Commands in the background, against a real daemon."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from agentbox import Agentbox, AgentboxError, ApprovalRequiredError, AsyncAgentbox, PolicyDeniedError, Process, Space, ValidationError


@pytest.fixture
def space(client: Agentbox) -> Iterator[Space]:
    with client.spaces.create(runtime="heavy") as made:
        yield made


def until(process: Process, said: str) -> str:
    """Reads a process until it has printed something."""
    text = ""
    for piece in process.output():
        text += piece.text
        if said in text:
            return text
    raise AssertionError(f"the command ended and had only printed {text!r}")


def test_input_of_any_size_goes_to_the_command(space: Space) -> None:
    counting = space.start("wc -c", stdin=True, tag="count")
    counting.write("one\n")
    counting.write(b"a" * 200_000)
    counting.close_stdin()
    done = counting.wait()
    assert (done.exit_code, done.stdout.strip()) == (0, "200004")


def test_a_command_in_the_background_is_found_again_and_gets_signals(space: Space) -> None:
    serving = space.start("trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.05; done", tag="server")
    until(serving, "up")
    assert space.exec("echo beside").stdout == "beside\n"
    assert [p.id for p in space.processes()] == [serving.id]
    again = space.process(serving.id)
    again.signal("SIGTERM")
    done = again.wait()
    assert (done.exit_code, done.stdout) == (7, "up\nbye\n")
    run = space.run([{"type": "shell", "command": "true"}])
    with pytest.raises(ValidationError):
        space.process(run.id)
    endless = space.start("sleep 1000 & sleep 1000")
    endless.kill()
    assert endless.run.status == "cancelled"


class Breaking(httpx.BaseTransport):
    """Breaks the first three event streams after some bytes."""

    def __init__(self) -> None:
        self.inner, self.broken = httpx.HTTPTransport(), 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self.inner.handle_request(request)
        if not request.url.path.endswith("/stream") or self.broken >= 3:
            return answer
        self.broken += 1
        assert isinstance(answer.stream, httpx.SyncByteStream)
        return httpx.Response(answer.status_code, headers=answer.headers, stream=Cut(answer.stream))


class Cut(httpx.SyncByteStream):
    def __init__(self, whole: httpx.SyncByteStream) -> None:
        self.whole = whole

    def __iter__(self) -> Iterator[bytes]:
        left = 700
        for chunk in self.whole:
            yield chunk[:left]
            left -= len(chunk)
            if left <= 0:
                raise httpx.ReadError("the connection broke")

    def close(self) -> None:
        self.whole.close()


def test_output_goes_on_after_a_lost_connection(client: Agentbox, space: Space) -> None:
    breaking = Breaking()
    with Agentbox(client.url, client.key, transport=breaking) as shaky:
        script = "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.05; done; printf '\\303'; sleep 0.3; printf '\\251'"
        counting = shaky.spaces.get(space.id).start(script)
        pieces = list(counting.output())
        assert "".join(p.text for p in pieces) == "1\n2\n3\n4\n5\n6\n7\n8\né"
        assert breaking.broken == 3
        rest = list(counting.output(after=pieces[0].id))
        assert [p.raw for p in rest] == [p.raw for p in pieces[1:]]


ASK = """import os
print(*os.get_terminal_size())
line = input()
print(*os.get_terminal_size(), "got", line)"""


async def test_a_terminal(home: Path) -> None:
    import asyncio

    async with AsyncAgentbox(home=home) as client, await client.spaces.create(runtime="heavy") as space:
        shell = await space.start(f"python3 -c '{ASK}'", pty=(80, 24))
        waiting = asyncio.create_task(shell.wait(on_approval=lambda _: "approve"))
        text = ""
        async for piece in shell.output():
            text += piece.text
            if "80 24" in text:
                break
        await shell.resize(100, 30)
        await shell.write("hello\r")
        assert "80 24\r\nhello\r\n100 30 got hello" in (await waiting).stdout


def test_what_policy_says_ends_waiting(client: Agentbox, space: Space) -> None:
    with pytest.raises(PolicyDeniedError):
        space.start("sudo reboot").wait()
    space.files.write("old/a", "x")
    asking = space.start("rm -r old")
    with pytest.raises(ApprovalRequiredError):
        asking.wait()
    assert asking.wait(on_approval=lambda _: "approve").exit_code == 0
    with client.spaces.create(runtime="nano") as nano:
        assert nano.start("echo hi").wait().stdout == "hi\n"
        with pytest.raises(AgentboxError) as lacks:
            nano.start("cat", stdin=True).wait()
        assert lacks.value.code == "tier_lacks"


def test_operations_are_begun_not_started(space: Space) -> None:
    operations: Any = [{"type": "shell", "command": "true"}]
    with pytest.raises(ValidationError, match="begin"):
        space.start(operations)
    assert [f["event"] for f in space.begin(operations).stream()][-1] == "complete"
