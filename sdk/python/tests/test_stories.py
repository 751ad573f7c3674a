"""The four journeys of a developer from beginning to end, each against a real daemon."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from agentbox import Agentbox, PolicyDeniedError, Run
from agentbox.tools import SpaceTools


def head(client: Agentbox) -> int:
    """Returns the place where the log goes on."""
    return int(client.events.list(limit=1)["next_from_seq"])


def history(client: Agentbox, begin: int) -> list[Any]:
    """Returns what was recorded from a place on."""
    found: list[Any] = []
    while True:
        page = client.events.list(from_seq=begin, limit=200)
        if not page["events"]:
            return found
        found += page["events"]
        begin = page["next_from_seq"]


def test_hello_agent_space(client: Agentbox, tmp_path: Path) -> None:
    """Upload, run a script, read the artifact and the log."""
    began, begin = time.monotonic(), head(client)
    (tmp_path / "project").mkdir()
    (tmp_path / "project/sales.csv").write_text("day,total\nmon,40\ntue,2\n")
    with client.spaces.create() as space:
        assert space.info["policy"] == "standard"  # type: ignore[index]
        space.files.upload(tmp_path / "project", "project")
        script = 'import csv\nprint(sum(int(r["total"]) for r in csv.DictReader(open("project/sales.csv"))))\n'
        run = space.run(
            [
                {"type": "createFile", "path": "sum.py", "content": script},
                {"type": "shell", "id": "sum", "command": "mkdir -p out && python3 sum.py | tee out/report.txt"},
            ]
        )
        done = run.result("sum")
        assert done and (run.status, done["stdout"], done["exitCode"]) == ("completed", "42\n", 0)
        assert space.files.download("out", tmp_path / "out") == [tmp_path / "out/report.txt"]
        assert (tmp_path / "out/report.txt").read_text() == "42\n"
        types = {e["event_type"] for e in history(client, begin)}
        assert {"space.created", "run.created", "run.started", "run.completed"} <= types
    assert time.monotonic() - began < 300


def test_a_long_task_in_a_loop(client: Agentbox) -> None:
    """A failure is local, the work goes on, and the transcript replays."""
    with client.spaces.create() as space:
        space.files.write("context/task.md", "Count the lines of context/data.txt")
        space.files.write("context/data.txt", "a\nb\nc\n")
        told: list[list[Any]] = []
        runs: list[Run] = []

        def batch(*operations: dict[str, Any]) -> list[dict[str, Any]]:
            run = space.begin(operations)
            told.append(list(run.stream()))
            runs.append(run)
            return run.refresh().results

        assert "Count the lines" in batch({"type": "readFile", "path": "context/task.md"})[0]["content"]
        first = batch(
            {"type": "createFile", "path": "count.py", "content": 'print(len(open("data.txt").readlines()))\n'},
            {"type": "shell", "command": "python3 count.py"},
            {"type": "createFile", "path": "notes.txt", "content": "tried\n"},
        )
        assert first[1]["exitCode"] != 0 and "data.txt" in first[1]["stderr"]
        assert first[2]["success"], "what follows a failure is done all the same"
        edit = {"oldContent": '"data.txt"', "newContent": '"context/data.txt"'}
        second = batch(
            {"type": "editFile", "path": "count.py", "edits": [edit]},
            {"type": "shell", "command": "python3 count.py | tee report.txt"},
        )
        assert second[1]["stdout"] == "3\n"
        assert space.files.read_text("report.txt") == "3\n"
        for run, frames in zip(runs, told, strict=True):
            assert list(run.stream()) == frames, "the transcript of a run that has ended is the one that was seen"
            shown: Any = run.show()
            assert shown["result"]["events"] == run.results


def test_a_sensitive_action(client: Agentbox) -> None:
    """The question says what, why and what follows; no secret reaches the model; all is in the log."""
    begin = head(client)
    secret = "hunter2-hunter2-hunter2"
    with client.spaces.create(env={"DEPLOY_TOKEN": secret}) as space:
        space.files.write("build/old.txt", "x")
        questions: list[Any] = []

        def answer(question: dict[str, Any]) -> Any:
            questions.append(question)
            return "deny" if len(questions) == 1 else "approve"

        model = SpaceTools(space, on_approval=answer)
        said = [model.run_command("rm -r build")]
        assert said[0].startswith("denied: ") and space.files.exists("build/old.txt")
        said.append(model.run_command("rm -r build"))
        assert said[1] == "" and not space.files.exists("build")
        for question in questions:
            assert all(question["question"][part] for part in ("what", "why", "impact"))
        assert "rm -r build" in questions[0]["question"]["what"]
        said.append(model.run_command('echo "$DEPLOY_TOKEN"; printenv DEPLOY_TOKEN'))
        with pytest.raises(PolicyDeniedError):
            space.exec("sudo reboot")
        assert secret not in "\n".join(said)
        log = history(client, begin)
        assert {"approval.requested", "approval.decided", "approval.used", "policy.denied"} <= {e["event_type"] for e in log}
        holding = [e for e in log if e["event_type"].startswith(("tool.", "run.", "file.")) and secret in json.dumps(e)]
        assert holding == [], "what was done and printed is recorded without the secret"


def test_code_in_place_of_tools(client: Agentbox) -> None:
    """An SDK of the developer, composed and filtered by code."""
    with client.spaces.create(runtime="nano") as space:
        space.files.write_many(
            {
                "company/__init__.py": "",
                "company/orders.py": 'def of(day):\n    return [{"id": n, "customer": n % 3, "total": 10 * n} for n in range(1, 8)]\n',
                "company/customers.py": 'def get(n):\n    return {"id": n, "name": ["Ann", "Bo", "Cy"][n], "vip": n == 1}\n',
            }
        )
        cell = space.code(
            "import json\n"
            "from company import orders, customers\n"
            'vips = [o for o in orders.of("today") if customers.get(o["customer"])["vip"]]\n'
            'json.dump(vips, open("vips.json", "w"))\n'
            'sum(o["total"] for o in vips)\n'
        )
        assert cell.text == "120", cell.stderr
        assert len(json.loads(space.files.read_text("vips.json"))) == 3
        assert space.code("len(vips)").text == "3"
