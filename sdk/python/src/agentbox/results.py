"""What became of commands and code, and how a notebook shows it."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Any, Literal

from ._wire import Json, printed
from .errors import OperationError, PolicyDeniedError

__all__ = ["Answer", "CodeResult", "Display", "ExecResult", "Output"]

Answer = Literal["approve", "deny", "wait"]
"""What a person, or a program for them, says of a question; ``wait`` leaves it to somebody else."""


@dataclass
class ExecResult:
    """What became of a command. A command that ended with another code than 0 is a result, and no error."""

    stdout: str
    stderr: str
    exit_code: int
    duration_ms: int
    run_id: str
    limit: str | None = None
    """The bound that ended the command, such as ``timeout`` or ``memory_bytes``."""
    tier: str | None = None
    """The tier in which it ran."""
    lacks: list[Json] = field(default_factory=list[Json])
    """What the command wanted and the tier has not."""
    raw: Json = field(default_factory=dict[str, Any], repr=False)
    """The result as the daemon sent it."""

    @classmethod
    def of(cls, run: Any, raw: Json) -> ExecResult:
        return cls(**_fields(run, raw))

    @property
    def ok(self) -> bool:
        """Whether the command ended with 0."""
        return self.exit_code == 0

    def check(self) -> ExecResult:
        """Returns the result if the command ended with 0, and raises an OperationError otherwise."""
        if self.ok:
            return self
        said = self.stderr.strip().splitlines()[-1:] or [""]
        raise OperationError(
            f"the command ended with {self.exit_code}" + (f" at its limit {self.limit}" if self.limit else "") + (f": {said[0]}" if said[0] else ""),
            code="limit_reached" if self.limit else "command_failed",
        )

    def __str__(self) -> str:
        return self.stdout

    def as_html(self) -> str:
        """Returns what a notebook shows."""
        return "".join(
            f'<pre style="{style}">{html.escape(text)}</pre>'
            for text, style in ((self.stdout, ""), (self.stderr, "color:#b00020"), ("" if self.ok else f"exit code {self.exit_code}", "color:#b00020"))
            if text
        )

    def _repr_html_(self) -> str:
        return self.as_html()


@dataclass
class Display:
    """Something that code has shown. One value may come in several forms, which share its number."""

    artifact_id: str
    mime_type: str
    is_result: bool
    """Whether it is the value of the cell's last line."""
    value: int
    """The number of the value, of which this is one form."""
    data: bytes = field(repr=False)

    @property
    def text(self) -> str:
        return self.data.decode(errors="replace")

    def as_bundle(self) -> dict[str, Any]:
        """Returns what a notebook shows, by its type."""
        kind = self.mime_type.split(";")[0]
        if kind.startswith("image/") and kind != "image/svg+xml":
            return {kind: self.data}
        return {kind: self.text}

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return self.as_bundle()


@dataclass
class CodeResult(ExecResult):
    """What became of a cell of code."""

    displays: list[Display] = field(default_factory=list[Display])
    """What the cell has shown beside its output: the value of its last line, charts, tables."""

    @classmethod
    def of(cls, run: Any, raw: Json, displays: list[Display] | None = None) -> CodeResult:
        return cls(**_fields(run, raw), displays=displays or [])

    @property
    def text(self) -> str | None:
        """The value of the last line, in its plainest form; None where there is none."""
        value = [d for d in self.displays if d.is_result]
        plain = [d for d in value if d.mime_type.startswith("text/plain")]
        return (plain or value)[0].text if value else None

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/html": self.as_html(), "text/plain": self.stdout}
        for d in self.displays:
            bundle.update(d.as_bundle())
        return bundle


def _fields(run: Any, raw: Json) -> Json:
    return {
        "stdout": printed(raw.get("stdout"), raw.get("encoding")),
        "stderr": printed(raw.get("stderr"), raw.get("encoding")),
        "exit_code": raw.get("exitCode", -1),
        "duration_ms": raw.get("durationMs", 0),
        "run_id": run.id,
        "limit": raw.get("limit"),
        "tier": raw.get("tier"),
        "lacks": raw.get("lacks") or [],
        "raw": raw,
    }


def shell(run: Any) -> Json:
    """Finds the result of the only command of a run."""
    last: Json = run.results[-1] if run.results else {}
    kind = last.get("type")
    if kind == "shell":
        if last.get("exitCode") is not None or not last.get("error"):
            return last
        raise OperationError(last["error"], code=last.get("reasonCode") or "command_not_started", suggestion=last.get("suggestion"))
    suggestion = last.get("suggestion")
    if kind == "policyDenied":
        raise PolicyDeniedError(
            last.get("reason") or "policy refused it", code=last.get("reasonCode") or "policy_denied", suggestion=suggestion, approval_id=last.get("approvalId")
        )
    if kind == "error":
        raise OperationError(last.get("message") or last.get("error") or "it could not be tried", code=last.get("reasonCode") or "operation_failed", suggestion=suggestion)
    if kind == "unknown":
        raise OperationError(
            last.get("reason") or "it is not known whether it took effect", code=last.get("reasonCode") or "outcome_unknown", suggestion=suggestion
        )
    raise OperationError(f"the run {run.id} ended as {run.status} without a result", code=f"run_{run.status}")


@dataclass(frozen=True)
class Output:
    """A piece of what a command in the background printed."""

    channel: Literal["stdout", "stderr"]
    text: str
    """The piece as text. A character that two pieces share comes with the second one."""
    raw: bytes = field(repr=False)
    """The piece as it was printed."""
    id: int = 0
    """The place of the piece in the stream of the run: ``output(after=id)`` goes on behind it."""
