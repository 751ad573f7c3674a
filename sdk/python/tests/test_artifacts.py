"""What code leaves behind, against a real daemon, and what importing the package costs."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from agentbox import Agentbox, Sandbox, ValidationError


def test_artifacts_of_a_run_outlive_its_space(client: Agentbox, tmp_path: Path) -> None:
    with client.spaces.create(runtime="nano") as space:
        done = space.exec("mkdir -p out && echo '# report' > out/report.md && echo no > other", artifacts=["out/**"])
        run = space.run([{"type": "createFile", "path": "a.csv", "content": "1,2"}], artifacts=["*.csv"])
        assert [a.path for a in run.artifacts()] == ["a.csv"]
        with pytest.raises(ValidationError):
            space.exec("true", artifacts=["../x"])
    (report,) = client.artifacts(done.run_id)
    data = b"# report\n"
    assert (report.path, report.size, report.sha256, report.media_type) == ("out/report.md", 9, hashlib.sha256(data).hexdigest(), "text/markdown")
    assert report._repr_html_() == "<div>out/report.md, 9 bytes, text/markdown</div>"
    assert "text/markdown" not in report._repr_mimebundle_()
    assert report.read() == data
    assert report._repr_mimebundle_()["text/markdown"] == "# report\n"
    assert report.download(tmp_path / "kept" / "report.md").read_bytes() == data


def test_artifacts_of_a_sandbox_say_what_they_are(client: Agentbox, tmp_path: Path) -> None:
    with Sandbox(client=client) as box:
        made = box.run("open('out.json', 'w').write('{}')").artifacts["out.json"]
        assert (made.size, made.sha256, made.media_type) == (2, hashlib.sha256(b"{}").hexdigest(), "application/json")
        assert made.download(tmp_path / "out.json").read_text() == "{}"


def test_importing_imports_no_http() -> None:
    code = "import sys; from agentbox import Sandbox, AsyncSandbox, Agentbox; sys.exit('httpx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
