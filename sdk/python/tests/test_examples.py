"""Every example of the pages, run against a real daemon.

A block that cannot run has a comment in front of it that begins with "not run:" and says why.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from vendor import ADDING, Vendor

from agentbox import Agentbox

ROOT = Path(__file__).resolve().parents[3]
PAGES = (ROOT / "sdk/python/README.md", ROOT / "docs/SDK.md")
BLOCK = re.compile(r"^(?:<!-- not run: (?P<why>[^\n]{10,}) -->\n)?```(?P<language>\w+)\n(?P<body>.*?)^```$", re.M | re.S)


def blocks() -> Iterator[tuple[str, str, str | None, str]]:
    for page in PAGES:
        text = page.read_text()
        for found in BLOCK.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield f"{page.relative_to(ROOT)}:{line}", found["language"], found["why"], found["body"]


EXAMPLES = {name: body for name, language, why, body in blocks() if language == "python" and why is None}


def test_the_pages_have_examples() -> None:
    assert len(EXAMPLES) >= 8
    assert [name for name, language, why, _ in blocks() if language == "sh" and why is None] == [], "a block of commands says why it is not run"


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, client: Agentbox, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGENTBOX_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text("1\n")
    (tmp_path / "project").mkdir()
    (tmp_path / "project/a.txt").write_text("a")
    with client.spaces.create() as space:
        space.files.write_many({"build/x": "x"})
        given = {"client": client, "space": space, "__name__": name}
        waiting = None
        if "approvals.watch" in EXAMPLES[name]:  # somebody has to ask
            waiting = threading.Thread(target=lambda: space.exec("rm -r build", on_approval=lambda _: "wait"))
            waiting.start()
        with Vendor(ADDING, "the sum is 5050") as model:
            monkeypatch.setenv("MODEL_URL", model.url)
            exec(compile(EXAMPLES[name], name, "exec"), given)
            assert bool(model.asked) == ("MODEL_URL" in EXAMPLES[name])
        if waiting:
            waiting.join(30)
            assert not waiting.is_alive(), "the question was not answered"
