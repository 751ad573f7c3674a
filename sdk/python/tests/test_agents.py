"""Agents from their blueprint to their report, against a real daemon and a scripted model."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from vendor import ADDING, Said, Vendor

from agentbox import Agentbox, AgentRun, AsyncAgentbox, ConflictError, NotFoundError, TimeoutError, ValidationError

MOST = 64 << 10  # bytes that an agent is told at once


def blueprint(name: str, model: str) -> str:
    return f"api_version: 1\nname: {name}\nadapter: {{kind: internal}}\nmodels: {{default: {model}}}\n"


def define(client: Agentbox, name: str, url: str) -> None:
    """Makes an agent that asks a scripted model, under one name."""
    client.models.put(name, dialect="generic", base_url=url, model=f"{name}-1", allow_private=True)
    client.blueprints.register(name, client.blueprints.lock(blueprint(name, name)))


def asks(run: AgentRun) -> str:
    """Waits until the run waits for a person, and returns the question's id."""
    for frame in run.stream(timeout=60):
        data: Any = frame["data"]
        if frame["event"] == "event" and data.get("type") == "approvalRequired":
            return str(data["approvalId"])
    raise AssertionError(f"the run asked nobody: {run.refresh().info}")


def test_blueprints(client: Agentbox) -> None:
    client.models.put("shown", provider="scripted", base_url="none", model="m")
    wrong = client.blueprints.check("api_version: 1\nname: kept\nadapter: {kind: internal}\nlimit: 1\n")
    assert not wrong["valid"] and "limit" in str(wrong["problems"])
    text = client.blueprints.lock(blueprint("kept", "shown"))
    assert "pins:" in text and not client.blueprints.check(text).get("drift")
    assert client.blueprints.register("kept", text)["version"] == 1
    second = client.blueprints.register("kept", text.replace("name: kept", "name: kept\ndescription: the second"))
    assert (second["version"], second["unpinned"], second["summary"].get("model")) == (2, 0, "shown")
    assert "kept" in [b["name"] for b in client.blueprints.list()]
    assert client.blueprints.get("kept", 1)["source"]["text"] == text
    assert "the second" in client.blueprints.get("kept")["source"]["text"]
    client.blueprints.remove("kept", "not used")
    assert client.blueprints.get("kept")["status"] == "removed"
    assert "kept" not in [b["name"] for b in client.blueprints.list()]


def test_models_and_usage(client: Agentbox) -> None:
    with Vendor([], "yes") as served:
        model = client.models.put("asked", dialect="generic", base_url=served.url, model="asked-1", allow_private=True, classes=["small"])
        assert (model["name"], model["model"], client.models.get("asked").get("classes")) == ("asked", "asked-1", ["small"])
        tested = client.models.test("asked")
        assert tested["reachable"] and served.asked, tested
        client.models.set_key("vendor", "a-secret-of-the-vendor")
        client.models.configure(routes=[{"class": "small", "models": ["asked"]}], budgets=[{"scope": "agent", "tokens_per_day": 1_000_000}])
        found = client.models.list()
        assert found["routes"][0]["models"] == ["asked"] and found["budgets"][0].get("tokens_per_day") == 1_000_000
        assert "vendor" in [k["name"] for k in found["keys"]] and "a-secret-of-the-vendor" not in json.dumps(found)
        client.models.remove_key("vendor")
        client.models.configure(routes=[], budgets=[])
        used = next(u for u in client.models.usage("model")["usage"] if u.get("id") == "asked")
        assert used["requests"] > 0 and used["usage"]["input_tokens"] >= 10
        client.models.remove("asked", "not used")
        with pytest.raises(NotFoundError):
            client.models.get("asked")


def test_an_agent_works_and_goes_on(client: Agentbox) -> None:
    with Vendor(ADDING, "the sum is 5050") as served, client.spaces.create() as space:
        define(client, "adder", served.url)
        said: list[str] = []
        tools: list[str] = []
        run = client.agents.run(
            "adder", "Add the numbers from 1 to 100.", space_id=space.id, title="sums", on_text=said.append, on_tool=lambda call: tools.append(call["tool"])
        )
        assert (run.status, run.report, run.ended) == ("succeeded", "the sum is 5050", True), run.info
        assert "".join(said) == "I add them. the sum is 5050"
        assert len(tools) == 2, tools
        assert run.info["title"] == "sums"
        assert space.files.read_text("sum.txt") == "5050\n"

        frames = list(run.stream())
        assert frames[-1]["event"] == "complete"
        assert [f["id"] for f in frames] == sorted(f["id"] for f in frames)
        assert len([f for f in frames if f["event"] == "event"]) == 2
        assert [(c["tool_name"], c["status"]) for c in run.calls()] == [("code", "succeeded"), ("space.createFile", "succeeded")]
        assert b"5050" in run.artifacts()[0].read()
        cost = run.usage()
        assert cost and (cost["requests"], cost["usage"]["input_tokens"]) == (3, 30)

        # The conversation goes on, in the same space, and another model answers.
        client.models.put("other", dialect="generic", base_url=served.url, model="other-1", allow_private=True)
        following = client.agents.run("adder", "And once more?", after=run, model="other")
        assert following.report == "the sum is 5050", following.info
        assert served.asked[-1]["model"] == "other-1"
        told = json.dumps(served.asked[-1]["messages"])
        assert 0 < told.find("Add the numbers from 1 to 100.") < told.find("And once more?")
        given = client.agents.get(following.id).info["given"]
        assert (given["after_run_id"], given["space_id"]) == (run.id, space.id)
        assert [r.id for r in client.agents.list(blueprint="adder", status="succeeded")] == [following.id, run.id]
        with pytest.raises(NotFoundError):
            client.agents.start("nobody", "x")
        with pytest.raises(NotFoundError):
            client.agents.start("adder", "x", after="run_01ARZ3NDEKTSV4RRFFQ69G5FAV")
        with pytest.raises((NotFoundError, ValidationError)):
            client.agents.start("adder", "x", model="unknown")
        with pytest.raises(ValidationError) as other:
            client.agents.get(space.exec("true").run_id)
        assert other.value.code == "not_an_agent"


def picture(size: int) -> bytes:
    """A PNG of a size, of which only the beginning is one."""
    return b"\x89PNG\r\n\x1a\n".ljust(size, b"x")


def test_a_task_has_pictures(client: Agentbox, tmp_path: Path) -> None:
    with Vendor([], "a chart") as served:
        define(client, "blind", served.url)
        with pytest.raises(ValidationError) as blind:
            client.agents.start("blind", "look", pictures=[picture(20)])
        assert blind.value.code == "model_without_images" and not served.asked

        client.models.put("sees", dialect="generic", base_url=served.url, model="sees-1", allow_private=True, images=True)
        client.blueprints.register("sees", client.blueprints.lock(blueprint("sees", "sees")))
        (tmp_path / "chart.png").write_bytes(picture(30))
        run = client.agents.run("sees", "look", pictures=[picture(20), tmp_path / "chart.png"])
        assert run.report == "a chart", run.info
        sent = json.dumps(served.asked[0]["messages"])
        for size in (20, 30):
            assert f"data:image/png;base64,{base64.b64encode(picture(size)).decode()}" in sent
        assert {a.read() for a in run.artifacts()} == {picture(20), picture(30)}
        kept = client.request("GET", "/v1/artifacts", query={"run_id": run.id})["artifacts"]
        assert ("chart.png", "image/png") in [(a.get("title"), a.get("mime_type")) for a in kept]
        for wrong, code in (([b"hello"], "invalid_picture"), ([picture(20)] * 9, "invalid_field")):
            with pytest.raises(ValidationError) as refused:
                client.agents.start("sees", "look", pictures=wrong)
            assert refused.value.code == code


REMOVING: list[list[Said]] = [[{"tool": "shell", "arguments": {"command": "rm -r build"}}], [{"say": "I heard: $LAST"}]]


def test_an_agent_asks_is_told_and_is_stopped(client: Agentbox) -> None:
    with Vendor(REMOVING, "it is done") as served, client.spaces.create() as space:
        define(client, "remover", served.url)
        space.files.write("build/x", "x")
        questions: list[Any] = []

        def deny(question: Any) -> Any:
            questions.append(question)
            return "deny"

        denied = client.agents.run("remover", "Remove it.", space_id=space.id, on_approval=deny)
        assert len(questions) == 1 and "rm -r build" in questions[0]["question"]["what"]
        assert space.files.exists("build/x") and (denied.report or "").startswith("I heard: "), denied.info

        run = client.agents.start("remover", "Remove it now.", space_id=space.id)
        approval = asks(run)
        with pytest.raises(TimeoutError) as late:
            run.wait(timeout=0.05)
        assert late.value.run_id == run.id
        run.steer("leave the rest alone")
        for text in (" ", "x" * (MOST + 1)):
            with pytest.raises(ValidationError):
                run.steer(text)
        client.approvals.approve(approval)
        assert run.wait(timeout=60).report == "I heard: leave the rest alone", run.info
        with pytest.raises(ConflictError) as ended:
            run.steer("too late")
        assert ended.value.code == "run_ended"

        space.files.write("build/x", "x")
        stopped = client.agents.start("remover", "Remove it again.", space_id=space.id)
        asks(stopped)
        stopped.steer("x" * MOST)
        stopped.stop("no longer wanted")
        assert (stopped.status, stopped.report) == ("cancelled", None)
        assert "no longer wanted" in (stopped.error or "") and stopped.wait().status == "cancelled"
        with pytest.raises(ConflictError):
            stopped.stop()


async def test_an_asynchronous_client_too(home: Path) -> None:
    with Vendor(ADDING, "the sum is 5050") as served:
        async with AsyncAgentbox(home=home) as client:
            await client.models.put("later", dialect="generic", base_url=served.url, model="later-1", allow_private=True)
            await client.blueprints.register("later", await client.blueprints.lock(blueprint("later", "later")))
            run = await client.agents.start("later", "Add them.")
            events = [f["event"] async for f in run.stream(timeout=60)]
            assert events[-1] == "complete" and "delta" in events and "operation" in events
            assert (await run.wait()).report == "the sum is 5050"
            assert [r.id async for r in client.agents.list(blueprint="later")] == [run.id]
