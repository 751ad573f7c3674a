"""Commands in the background."""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Literal

from .._wire import Json, part, raw_of, text_of
from ..errors import ValidationError
from ..results import Answer, ExecResult, Output, shell

if TYPE_CHECKING:
    from .client import AsyncRun, AsyncTransport

__all__ = ["AsyncProcess"]

PIECE = 65_536
"""The most that one request gives, in bytes."""

Signal = Literal[
    "SIGALRM", "SIGCONT", "SIGHUP", "SIGINT", "SIGKILL", "SIGQUIT", "SIGSTOP", "SIGTERM", "SIGTSTP", "SIGUSR1", "SIGUSR2", "SIGWINCH"
]


class AsyncProcess:
    """A command that runs in the background, beside the other runs of its space. ``space.start`` makes it and ``space.process`` finds it again."""

    def __init__(self, transport: AsyncTransport, run: AsyncRun, terminal: bool) -> None:
        self._t, self.run, self.id, self.terminal = transport, run, run.id, terminal

    def __repr__(self) -> str:
        return f"<process {self.id}>"

    async def write(self, data: str | bytes, *, timeout: float | None = None, idempotency_key: str | None = None) -> None:
        """Gives the command input.

        More than 65,536 bytes go in pieces, in order. A RateLimitError with the code ``input_full`` says that the command does not read; the
        pieces before it were given.
        """
        raw = data.encode() if isinstance(data, str) else data
        if idempotency_key is not None and len(raw) > PIECE:
            raise ValidationError(f"input under one idempotency key has at most {PIECE} bytes", code="input_too_large", status=400)
        for at in range(0, len(raw), PIECE):
            piece = text_of(raw[at : at + PIECE])
            await self._give({"pty": piece} if self.terminal else {"stdin": piece}, timeout, idempotency_key)

    async def close_stdin(self) -> None:
        """Ends the input. A terminal gets Ctrl-D."""
        await self._give({"close": True})

    async def signal(self, name: Signal) -> None:
        """Sends a signal to the process group of the command. ``SIGKILL`` ends all its processes."""
        await self._give({"signal": name})

    async def kill(self) -> None:
        """Ends the run and every process of it."""
        await self.run.cancel()

    async def resize(self, cols: int, rows: int) -> None:
        """Gives the terminal another size."""
        await self._give({"resize": {"cols": cols, "rows": rows}})

    async def output(self, *, after: int | None = None, timeout: float | None = None) -> AsyncIterator[Output]:
        """Yields what the command prints, from its beginning or behind ``after``, until it has ended.

        It resumes after a lost connection: nothing is missed and nothing comes twice.
        """
        decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in ("stdout", "stderr")}
        async for frame in self.run.stream(None if after is None else after + 1, timeout=timeout):
            channel = frame["event"]
            if channel == "stdout" or channel == "stderr":
                raw = raw_of(frame["data"]["data"], frame["data"]["encoding"])
                yield Output(channel, decoders[channel].decode(raw), raw, frame["id"])

    async def wait(
        self,
        *,
        on_approval: Callable[[Json], Answer | Awaitable[Answer]] | None = None,
        on_stdout: Callable[[str], None] | None = None,
        on_stderr: Callable[[str], None] | None = None,
        timeout: float | None = None,
    ) -> ExecResult:
        """Waits until the command has ended, and returns what became of it.

        Raises a PolicyDeniedError or an ApprovalRequiredError where it was not run. The result holds the first 256 KiB of each channel;
        ``output`` yields all.
        """
        await self.run.wait(on_approval=on_approval, on_stdout=on_stdout, on_stderr=on_stderr, timeout=timeout)
        return ExecResult.of(self.run, shell(self.run))

    async def _give(self, given: Json, timeout: float | None = None, idempotency_key: str | None = None) -> None:
        await self._t.json("POST", f"/v1/runs/{part(self.id)}/input", body=given, timeout=timeout, idempotency_key=idempotency_key)
