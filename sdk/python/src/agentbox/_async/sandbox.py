"""Code in a sandbox in three lines."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._wire import Json
from ..config import SandboxConfig
from ..errors import AgentboxError, OperationError
from ..results import CodeResult, ExecResult
from .client import AsyncAgentbox, AsyncArtifact, AsyncSpace

__all__ = ["AsyncSandbox", "AsyncSandboxResult"]


@dataclass
class AsyncSandboxResult:
    """What became of code. ``artifacts`` are the files that it made or changed, by their paths."""

    stdout: str
    stderr: str
    exit_code: int
    artifacts: dict[str, AsyncArtifact] = field(default_factory=dict[str, Any])
    duration_ms: int = 0
    limit: str | None = None
    """The bound that ended it, such as ``timeout``."""

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    def _repr_html_(self) -> str:
        shown = ExecResult(self.stdout, self.stderr, self.exit_code, self.duration_ms, "").as_html()
        return shown + "".join(a._repr_html_() for a in self.artifacts.values())  # pyright: ignore[reportPrivateUsage]


class AsyncSandbox:
    """A sandbox for Python code: ``Sandbox().run("print(1)").stdout``.

    It finds a running daemon or starts one; ``daemon`` says which. Its space is made with the first use and removed by ``close`` or at the end
    of a ``with`` block. Each ``run`` is a program of its own over the same files; ``cell`` keeps variables.
    """

    def __init__(self, config: SandboxConfig | None = None, *, client: AsyncAgentbox | None = None) -> None:
        self.config = config or SandboxConfig()
        self._own = client is None
        self.client = client or AsyncAgentbox(start_daemon=True)
        self._space: AsyncSpace | None = None

    @property
    def daemon(self) -> str:
        """Says which daemon serves: its address and where it was found, or that it was started."""
        return f"{self.client.url} ({self.client.origin})"

    async def space(self) -> AsyncSpace:
        """Returns the space of the sandbox, which is made with the first use."""
        if self._space is None:
            c = self.config
            env = dict(c.env)
            if c.seed is not None:
                env |= {"AGENTBOX_SEED": c.seed, "AGENTBOX_CLOCK": "2026-01-01T00:00:00Z"}
            limits = {"memory_bytes": c.memory_limit_mb << 20}
            space = await self.client.spaces.create(runtime=c.runtime, env=env, limits=limits, policy=c.policy, ttl_seconds=3600)
            self._space = space
            try:
                await self._check_packages(space)
            except BaseException:
                await self.close()
                raise
        return self._space

    async def _check_packages(self, space: AsyncSpace) -> None:
        if not self.config.packages:
            return
        names = [p.split("==")[0].split(">")[0].split("<")[0].split("[")[0].strip().replace("-", "_") for p in self.config.packages]
        missing: list[str] = []
        for name in names:
            done = await space.exec(f"python3 -c {shlex.quote('import ' + name)}")  # by which auto finds the tier that has it
            if not done.ok:
                missing.append(name)
        if missing:
            await space.refresh()
            raise AgentboxError(
                f"the runtime {space.tier} does not have {', '.join(missing)}", code="package_missing",
                suggestion="use runtime='heavy', or upload the wheel and install it with: pip install --no-index FILE",
            )  # fmt: skip

    async def run(self, code: str, *, timeout_ms: int | None = None, **options: Any) -> AsyncSandboxResult:
        """Runs Python code as a program of its own. Files of runs before are there, variables are not."""
        space = await self.space()
        command = f"python3 -c {shlex.quote(self.config.guarded(code))}"
        if len(command) > 4000:
            await space.files.write(".agentbox-run.py", self.config.guarded(code))
            command = "python3 .agentbox-run.py"
        milliseconds = timeout_ms or self.config.timeout_ms
        done = await space.exec(command, command_ms=max(milliseconds, 1000), title=options.pop("title", code[:200]), **options)
        artifacts: dict[str, AsyncArtifact] = {}
        for change in (await space.diff())["differences"]:
            after: Json | None = change.get("after")
            if after and after.get("type") == "file" and change["path"] != ".agentbox-run.py":
                artifacts[change["path"]] = space.files.artifact(change["path"], after)
        return AsyncSandboxResult(done.stdout, done.stderr, done.exit_code, artifacts, done.duration_ms, done.limit)

    async def cell(self, code: str, **options: Any) -> CodeResult:
        """Runs Python code in an interpreter that keeps its variables, and returns what it has shown too."""
        space = await self.space()
        return await space.code(self.config.guarded(code), command_ms=self.config.timeout_ms, **options)

    async def shell(self, command: str, **options: Any) -> ExecResult:
        """Runs a command in bash."""
        return await (await self.space()).exec(command, command_ms=max(self.config.timeout_ms, 1000), **options)

    async def upload_file(self, local_path: str | os.PathLike[str], remote_path: str | None = None) -> None:
        """Writes a file of this machine into the sandbox."""
        await (await self.space()).files.upload(local_path, remote_path)

    async def download_file(self, remote_path: str, local_path: str | os.PathLike[str] | None = None) -> Path:
        """Writes a file of the sandbox to this machine, by default under its own name in the present folder."""
        written = await (await self.space()).files.download(remote_path, local_path or Path(remote_path).name)
        if len(written) != 1:
            raise OperationError(f"{remote_path} is no file", code="not_a_file")
        return written[0]

    async def close(self) -> None:
        """Removes the space, and ends a daemon that the sandbox has started."""
        space, self._space = self._space, None
        if space is not None:
            await space.__aexit__()
        if self._own:
            await self.client.close()

    async def __aenter__(self) -> AsyncSandbox:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
