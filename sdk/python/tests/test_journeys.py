"""The journeys of a developer, each against a real daemon."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from agentbox import (
    Agentbox,
    AgentboxError,
    ApprovalRequiredError,
    AsyncAgentbox,
    AsyncSandbox,
    AuthenticationError,
    ConflictError,
    NetworkError,
    NotFoundError,
    OperationError,
    PolicyDeniedError,
    Sandbox,
    SandboxConfig,
    TimeoutError,
    ValidationError,
)


def test_three_lines(client: Agentbox) -> None:
    with Sandbox(client=client) as box:
        done = box.run("print(6 * 7)\nopen('out.txt', 'w').write('hi')")
        assert (done.stdout, done.stderr, done.exit_code) == ("42\n", "", 0)
        assert list(done.artifacts) == ["out.txt"]
        assert done.artifacts["out.txt"].read() == b"hi"
        assert done.duration_ms >= 0


def test_sandbox_keeps_files_and_cells_keep_variables(client: Agentbox, tmp_path: Path) -> None:
    with Sandbox(client=client) as box:
        (tmp_path / "in.csv").write_text("1\n2\n")
        box.upload_file(tmp_path / "in.csv", "data/in.csv")
        done = box.run("print(sum(int(l) for l in open('data/in.csv')), file=open('sum.txt', 'w'))")
        assert list(done.artifacts) == ["sum.txt"]
        assert box.download_file("sum.txt", tmp_path / "sum.txt").read_text() == "3\n"
        box.cell("x = 20")
        assert box.cell("x + 1").text == "21"
        assert box.shell("cat sum.txt").stdout == "3\n"


def test_sandbox_limits(client: Agentbox) -> None:
    with Sandbox(SandboxConfig(timeout_ms=1000), client=client) as box:
        done = box.run("while True: pass")
        assert done.exit_code != 0 and done.limit is not None, done
        assert box.run("1/0").stderr.endswith("ZeroDivisionError: division by zero\n")
    with Sandbox(SandboxConfig(memory_limit_mb=64, runtime="nano"), client=client) as box:
        assert not box.run("b = bytearray(200 << 20)").ok


def test_sandbox_seed_and_modules(client: Agentbox) -> None:
    code = "import random; print(random.random())"
    config = SandboxConfig(seed="7", runtime="nano")
    said = []
    for _ in range(2):
        with Sandbox(config, client=client) as box:
            said.append(box.run(code).stdout)
    assert said[0] == said[1] != ""
    with Sandbox(SandboxConfig(allowed_modules=["math"]), client=client) as box:
        assert box.run("import math; print(math.floor(2.5))").stdout == "2\n"
        assert "not among allowed_modules" in box.run("import socket").stderr
        assert "not among allowed_modules" in box.run("__import__('socket')").stderr


def test_sandbox_packages(client: Agentbox) -> None:
    with Sandbox(SandboxConfig(packages=["json"], runtime="nano"), client=client) as box:
        assert box.run("print(1)").ok
    with Sandbox(SandboxConfig(packages=["nonesuch"], runtime="nano"), client=client) as box:
        with pytest.raises(AgentboxError, match="does not have nonesuch"):
            box.run("print(1)")


@pytest.mark.parametrize("wrong", [{"timeout_ms": 0}, {"timeout_ms": 3_600_001}, {"memory_limit_mb": 15}, {"runtime": "best"}])
def test_config_is_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SandboxConfig(**wrong)


def test_hello(client: Agentbox) -> None:
    with client.spaces.create(env={"WHO": "world"}) as space:
        space.files.write("greet.sh", 'echo "hello $WHO" | tee greeting.txt\n')
        done = space.exec("bash greet.sh")
        assert (done.stdout, done.exit_code) == ("hello world\n", 0)
        assert space.files.read_text("greeting.txt") == "hello world\n"
        failed = space.exec("echo oops >&2; exit 3")
        assert (failed.exit_code, failed.stderr) == (3, "oops\n")
        with pytest.raises(OperationError, match="nodir|folder"):
            space.exec("ls", cwd="nodir")
        with pytest.raises(OperationError, match="ended with 3: oops"):
            failed.check()
    with pytest.raises(AgentboxError):
        space.exec("true")


def test_iterate(client: Agentbox) -> None:
    with client.spaces.create() as space:
        seen: list[str] = []
        run = space.run(
            [
                {"type": "createFile", "id": "one", "path": "a.txt", "content": "first"},
                {"type": "shell", "id": "two", "command": "echo live; cat a.txt"},
            ],
            on_stdout=seen.append,
        )
        assert run.status == "completed" and "".join(seen) == "live\nfirst"
        result = run.result("two")
        assert result is not None and result["stdout"] == "live\nfirst"
        started = space.begin([{"type": "shell", "command": "echo second > a.txt"}])
        names = [f["event"] for f in started.stream()]
        assert names[0] == "operation" and names[-1] == "complete"
        undone = space.rewind(started.id)
        assert space.files.read_text("a.txt") == "first"
        with space.fork("branch", at=undone["from_snapshot_sha256"]) as fork:
            assert fork.files.read_text("a.txt") == "second\n"
        assert len(list(space.snapshots())) >= 3


def test_approvals(client: Agentbox, home: Path) -> None:
    with client.spaces.create() as space:
        space.files.write("old/a.txt", "x")
        with pytest.raises(ApprovalRequiredError) as err:
            space.exec("rm -r old")
        assert err.value.approval_id and err.value.run_id
        with pytest.raises(ApprovalRequiredError, match="an earlier run of the space waits"):
            space.exec("echo next")
        client.approvals.deny(err.value.approval_id, reason="keep it")
        with pytest.raises(PolicyDeniedError):
            space.exec("rm -r old", on_approval=lambda _: "deny")
        assert space.files.exists("old/a.txt")
        assert space.exec("rm -r old", on_approval=lambda _: "approve").exit_code == 0
        assert not space.files.exists("old")
        space.files.write("more/a.txt", "x")
        codes: list[int] = []
        waiting = threading.Thread(target=lambda: codes.append(space.exec("rm -r more", on_approval=lambda _: "wait").exit_code))
        waiting.start()
        with Agentbox(home=home) as other:
            for question in other.approvals.watch():
                other.approvals.approve(question["approval_id"], action_sha256=question["action_sha256"])
                break
        waiting.join(30)
        assert codes == [0]


def test_code_shows_rich_results(client: Agentbox) -> None:
    with client.spaces.create(runtime="nano") as space:
        shown = space.code("class T:\n    def _repr_html_(self): return '<b>hi</b>'\nT()")
        assert any(d.mime_type.startswith("text/html") and d.text == "<b>hi</b>" for d in shown.displays)
        assert "<b>hi</b>" in shown._repr_mimebundle_()["text/html"]
        assert space.code("const y: number = 4; y * 2", language="typescript").text == "8"
        assert "ZeroDivisionError" in space.code("1/0").stderr
        assert sorted(c["name"] for c in space.contexts()) == ["main", "main-javascript"]


def test_files(client: Agentbox, tmp_path: Path) -> None:
    with client.spaces.create() as space:
        data = bytes(range(256))
        space.files.write("b.bin", data)
        assert space.files.read("b.bin") == data
        for name in ("archive", "a b#?ü.txt", "deep/er/x"):
            space.files.write(name, name)
            assert space.files.read_text(name) == name
        for bad in ("../out.txt", "", "a//b", "./a"):
            with pytest.raises(ValidationError):
                space.files.write(bad, "x")
        with pytest.raises(NotFoundError):
            space.files.read("none.txt")
        assert space.files.stat("none/none.txt") is None
        (tmp_path / "in/deep").mkdir(parents=True)
        for n in range(120):
            (tmp_path / f"in/deep/f{n}.txt").write_text(str(n))
        (tmp_path / "in/link").symlink_to("/etc/passwd")
        assert len(space.files.upload(tmp_path / "in", "data")) == 120
        assert space.exec("ls data/deep | wc -l").stdout.strip() == "120"
        assert len(space.files.download("data", tmp_path / "out")) == 120
        assert (tmp_path / "out/deep/f7.txt").read_text() == "7"
        assert space.files.archive("data")[:2] == b"PK"


def test_events_and_rooms(client: Agentbox) -> None:
    head = client.events.list(limit=1)["next_from_seq"]
    with client.spaces.create() as space:
        for e in client.events.subscribe(head, space_id=space.id):
            if e["event_type"] == "space.created":
                last = e["seq"]
                break
        following = client.events.subscribe(after=last)
        assert next(following)["seq"] == last + 1
    room = client.rooms.create("lab")
    thread = client.rooms.create_thread(room["room_id"], "release")
    client.rooms.post(thread["thread_id"], "**ready**")
    assert next(client.rooms.messages(thread["thread_id"]))["content_md"] == "**ready**"


def test_errors(client: Agentbox) -> None:
    with pytest.raises(NotFoundError) as missing:
        client.spaces.get("spc_01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert missing.value.request_id and missing.value.status == 404
    with pytest.raises(ValidationError):
        client.spaces.create(policy="none")  # type: ignore[arg-type]
    with client.spaces.create("taken"), pytest.raises(ConflictError) as taken:
        client.spaces.create("taken")
    assert taken.value.code == "space_name_taken" and taken.value.suggestion
    with pytest.raises(AuthenticationError):
        Agentbox(client.url, "wrong").spaces.get("x")
    with pytest.raises(NetworkError, match="agentbox up"):
        Agentbox("http://127.0.0.1:9", "k", retries=0).spaces.get("x")
    with client.spaces.create() as space:
        with pytest.raises(PolicyDeniedError):
            space.exec("sudo reboot")
        with pytest.raises(TimeoutError):
            space.exec("while :; do :; done", command_ms=5000, on_stdout=lambda _: None, timeout=0.5)


class Flaky(httpx.BaseTransport):
    """Loses the first two answers to changes, after the daemon has done them."""

    def __init__(self) -> None:
        self.inner, self.lost = httpx.HTTPTransport(), 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self.inner.handle_request(request)
        if request.method == "POST" and self.lost < 2:
            self.lost += 1
            answer.read()
            raise httpx.ReadError("the connection broke")
        return answer


def test_a_lost_answer_doubles_nothing(client: Agentbox) -> None:
    flaky = Flaky()
    with Agentbox(client.url, client.key, transport=flaky) as shaky, shaky.spaces.create("shaky") as space:
        assert flaky.lost == 2
        assert [s.id for s in client.spaces.list() if s.name == "shaky"] == [space.id]


async def test_async(home: Path) -> None:
    async with AsyncAgentbox(home=home) as client, AsyncSandbox(client=client) as box:
        assert (await box.run("print(1)")).stdout == "1\n"
        async with await client.spaces.create() as space:
            assert (await space.exec("echo hi")).stdout == "hi\n"

            async def answer(_: dict[str, Any]) -> str:
                return "approve"

            await space.files.write("old/a", "x")
            assert (await space.exec("rm -r old", on_approval=answer)).ok


def test_finding_a_daemon(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGENTBOX_HOME", str(home))
    with Agentbox() as found:
        assert found.origin == str(home)
    monkeypatch.setenv("AGENTBOX_KEY", "")
    with pytest.raises(AgentboxError, match="AGENTBOX_KEY is set and empty"):
        Agentbox()
    monkeypatch.delenv("AGENTBOX_KEY")
    with pytest.raises(AgentboxError, match="agentbox up"):
        Agentbox(home=tmp_path)


def test_the_key_of_the_local_owner_goes_nowhere_else(home: Path, tmp_path: Path) -> None:
    with Agentbox(home=home) as local:
        own = local.url
    with Agentbox(url=own, home=home) as named:
        list(named.spaces.list())  # the daemon knows the key
        assert own in repr(named)
    cases = [("http://127.0.0.1:1", home, f"goes to {own} only"), (own, tmp_path, "no key for"), ("x", home, "no key for")]
    for url, folder, says in cases:
        with pytest.raises(AgentboxError, match=says) as refused:
            Agentbox(url=url, home=folder)
        assert refused.value.code == "key_missing" and "AGENTBOX_KEY" in str(refused.value)
    with pytest.raises(ValidationError, match="with http or https"):
        Agentbox(url=own.removeprefix("http://"), key="abk_x")


def test_what_is_shown_of_things(client: Agentbox) -> None:
    with client.spaces.create(runtime="nano") as space, client.spaces.create(name="shown", runtime="nano") as named:
        assert repr(space) == f"<space {space.id} in nano>"
        assert repr(named) == f"<space shown {named.id} in nano>"
        run = space.run([{"type": "shell", "command": "true"}])
        assert repr(run) == f"<run {run.id}, completed>"


def test_a_daemon_is_started_where_none_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGENTBOX_HOME", str(tmp_path / "new"))
    with Sandbox() as box:
        assert "started in" in box.daemon
        assert box.run("print(1)").stdout == "1\n"
    time.sleep(0.1)
    with pytest.raises(AgentboxError):
        Agentbox(home=tmp_path / "new")


def test_a_paused_space_keeps_its_files(client: Agentbox) -> None:
    with client.spaces.create() as space:
        space.exec("echo kept > a")
        space.pause(reason="lunch")
        assert space.info["status"] == "paused"
        assert space.info["pause"]["reason"] == "lunch"
        assert space.files.read_text("a") == "kept\n"
        with pytest.raises(ConflictError):
            space.pause()
        space.resume(ttl_seconds=600)
        assert "pause" not in space.info
        assert space.exec("cat a").stdout == "kept\n"
        space.pause(resume_on_run=True)
        assert space.exec("cat a").stdout == "kept\n"
