"""The client of a daemon."""

from __future__ import annotations

import html
import json
import os
import threading
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, cast

from .._discover import discover, start, stop
from .._wire import Json, JsonList, Message, Parser, backoff, clean, file_path, part, passing, printed, text_of
from ..errors import (
    AgentboxError,
    ApprovalRequiredError,
    NetworkError,
    NotFoundError,
    OperationError,
    TimeoutError,
    UnavailableError,
    ValidationError,
    from_problem,
)
from ..results import Answer, CodeResult, Display, ExecResult, shell
from ._pause import pause
from .process import AsyncProcess

if TYPE_CHECKING:
    from subprocess import Popen

    import httpx

    from .. import schema

__all__ = ["AsyncAgentbox", "AsyncArtifact", "AsyncRun", "AsyncSpace"]

Paths = list[Path]
Parts = list[Any]

ENDED = ("completed", "error", "cancelled")
# Seconds that a call waits for a command beside its own time. On a new machine the interpreter is compiled first.
PREPARING = 300


class AsyncTransport:
    """Sends requests, repeats those that may be repeated, and turns problem documents into errors."""

    def __init__(self, url: str, key: str, capability_token: str | None, timeout: float, retries: int, transport: httpx.AsyncBaseTransport | None) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValidationError(
                f"{url} is not the address of a daemon", code="config_invalid", suggestion="write it with http or https, as in http://127.0.0.1:7433"
            )
        headers = {"Authorization": f"Bearer {key}", "Accept": "application/json, application/octet-stream"}
        if capability_token:
            headers["X-Capability-Token"] = capability_token
        self.url, self.timeout, self.retries = url.rstrip("/"), timeout, retries
        self._headers, self._transport = headers, transport
        self._http: httpx.AsyncClient | None = None
        self._making = threading.Lock()

    @property
    def http(self) -> httpx.AsyncClient:
        """The connections. The library is imported with the first request, because its import takes most of the time of importing this package."""
        with self._making:  # several threads may send the first request
            if self._http is None:
                import httpx

                limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
                self._http = httpx.AsyncClient(headers=self._headers, timeout=self.timeout, transport=self._transport, limits=limits, trust_env=False)
            return self._http

    async def close(self) -> None:
        """Closes the connections, if there are any."""
        if self._http is not None:
            await self._http.aclose()

    async def json(self, method: str, path: str, **kwargs: Any) -> Any:
        answer = await self.send(method, path, **kwargs)
        return answer.json() if answer.content else None

    async def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        content: bytes | None = None,
        files: Any = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        idempotency_key: str | None = None,
        once: bool = False,
    ) -> httpx.Response:
        """Sends a request. The daemon takes no idempotency key for one that is sent ``once``, so it is not repeated."""
        import httpx

        send = dict(headers or {})
        if method != "GET" and not once:
            send["Idempotency-Key"] = idempotency_key or str(uuid.uuid4())
        if body is not None:
            content, send["Content-Type"] = json.dumps(body).encode(), "application/json"
        params = {n: str(v).lower() if isinstance(v, bool) else v for n, v in clean(query or {}).items()}
        patience = timeout or self.timeout
        until = time.monotonic() + patience
        failed = 0
        while True:
            left = until - time.monotonic()
            try:
                if left <= 0:
                    raise httpx.ReadTimeout("the time is over")
                answer = await self.http.request(method, self.url + path, params=params, content=content, files=files, headers=send, timeout=left)
                if answer.is_success:
                    return answer
                raise problem(answer)
            except httpx.TimeoutException as err:
                raise TimeoutError(f"{method} {path} was not answered within {patience:g} s", code="timeout") from err
            except httpx.TransportError as err:
                failure: Exception = NetworkError(
                    f"the daemon at {self.url} cannot be reached: {err}", code="unreachable", suggestion="start one with: agentbox up"
                )
                failure.__cause__ = err
            except AgentboxError as err:
                failure = err
            if once or failed >= self.retries or not passing(failure):
                raise failure
            await pause(min(backoff(failed, failure), max(left, 0)))
            failed += 1

    async def follow(
        self, path: str, *, query: Mapping[str, Any] | None = None, last_id: str | None = None, last_event: str | None = None, timeout: float | None = None
    ) -> AsyncIterator[Message]:
        """Yields the messages of an event stream and takes it up again where it broke. Nothing is lost and nothing comes twice."""
        import httpx

        failed = 0
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last_id} if last_id else {})
            progress = False
            failure: Exception | None = None
            left = None if until is None else max(until - time.monotonic(), 0.001)
            limits = httpx.Timeout(self.timeout, read=left)
            try:
                async with self.http.stream("GET", self.url + path, params=clean(query or {}), headers=headers, timeout=limits) as answer:
                    if answer.status_code == 204:
                        return
                    if not answer.is_success:
                        await answer.aread()
                        raise problem(answer)
                    parser = Parser()
                    async for line in answer.aiter_lines():
                        for m in parser.feed(line):
                            progress, last_id = True, m.id or last_id
                            yield m
                            if m.event == last_event:
                                return
                        if until is not None and time.monotonic() > until:
                            raise httpx.ReadTimeout("the time is over")
            except httpx.TimeoutException as err:
                if until is not None and time.monotonic() >= until:
                    raise TimeoutError(f"{path} has not ended within {timeout:g} s; it goes on", code="timeout") from err
                failure = NetworkError(f"the daemon at {self.url} does not answer", code="unreachable")
            except httpx.TransportError as err:
                failure = NetworkError(f"the daemon at {self.url} cannot be reached: {err}", code="unreachable", suggestion="start one with: agentbox up")
            except AgentboxError as err:
                if not passing(err):
                    raise
                failure = err
            failed = 1 if progress else failed + 1
            if failed > max(self.retries, 6):
                raise failure or UnavailableError("the daemon ends the stream again and again", code="stream_ended")
            await pause(backoff(failed - 1, failure))


def problem(answer: httpx.Response) -> AgentboxError:
    """Makes the error of an answer that is none of success."""
    try:
        body = answer.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        body = {"detail": answer.text[:200]}
    wait = answer.headers.get("retry-after", "")
    return from_problem(answer.status_code, cast(Json, body), float(wait) if wait.isdigit() else None)


class AsyncAgentbox:
    """The client of a daemon. Without arguments it finds the daemon of the environment, else the local one.

    ``start=True`` starts a daemon where none is found, and ends it with this process. ``origin`` says which daemon it is.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        capability_token: str | None = None,
        home: str | os.PathLike[str] | None = None,
        start_daemon: bool = False,
        timeout: float = 30,
        retries: int = 3,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._child: Popen[bytes] | None = None
        try:
            found = discover(url, key, home)
        except AgentboxError as err:
            if not start_daemon or err.code != "daemon_not_running":
                raise
            found, self._child = start(home)
        self.url, self.key, self.origin = found.url, found.key, f"started in {found.origin}" if self._child else found.origin
        self.transport = AsyncTransport(found.url, found.key, capability_token, timeout, retries, transport)
        self.spaces = AsyncSpaces(self.transport)
        self.approvals = AsyncApprovals(self.transport)
        self.events = AsyncEvents(self.transport)
        self.rooms = AsyncRooms(self.transport)
        from .agents import AsyncAgents, AsyncBlueprints, AsyncModels  # which import this module
        from .mcp_servers import AsyncMcpServers

        self.blueprints = AsyncBlueprints(self.transport)
        self.models = AsyncModels(self.transport)
        self.mcp_servers = AsyncMcpServers(self.transport)
        self.agents = AsyncAgents(self.transport)

    def __repr__(self) -> str:
        return f"<agentbox at {self.url}>"

    async def request(self, method: str, path: str, **kwargs: Any) -> Any:
        """Sends any request of the API and reads the JSON of its answer: for what has no method here."""
        return await self.transport.json(method, path, **kwargs)

    async def artifacts(self, run: str) -> list[AsyncArtifact]:
        """Lists what a run has left, by its id, such as ``run_id`` of a result: also when its space is gone."""
        return await kept(self.transport, run)

    async def close(self) -> None:
        """Closes the connections, and ends a daemon that this client started."""
        await self.transport.close()
        if self._child:
            stop(self._child)

    async def __aenter__(self) -> AsyncAgentbox:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncSpaces:
    """The spaces of the workspace."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._t = transport

    async def create(
        self,
        name: str | None = None,
        *,
        description: str | None = None,
        policy: Literal["restrictive", "standard", "permissive"] | None = None,
        policy_overrides: Any = None,
        runtime: str | None = None,
        env: Mapping[str, str] | None = None,
        metadata: Mapping[str, str] | None = None,
        limits: Mapping[str, int] | None = None,
        room_id: str | None = None,
        ttl_seconds: int | None = None,
        best_effort: bool | None = None,
        archive: bytes | None = None,
        path: str | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> AsyncSpace:
        """Makes a space. ``archive`` (zip, tar or tar.gz) or ``path`` (a folder of the daemon's host) is what its files begin with."""
        origin = {"archive": text_of(archive)} if archive is not None else {"path": path} if path else None
        body = clean(
            {
                "name": name, "description": description, "policy": policy, "policy_overrides": policy_overrides, "runtime": runtime, "env": env,
                "metadata": metadata, "limits": limits, "room_id": room_id, "ttl_seconds": ttl_seconds, "best_effort": best_effort, "from": origin,
            }
        )  # fmt: skip
        return AsyncSpace(self._t, await self._t.json("POST", "/v1/spaces", body=body, idempotency_key=idempotency_key, timeout=timeout))

    async def get(self, space: str) -> AsyncSpace:
        """Finds a space by its id or its name."""
        return AsyncSpace(self._t, await self._t.json("GET", f"/v1/spaces/{part(space)}"))

    async def list(self, status: str | None = None) -> AsyncIterator[AsyncSpace]:
        """Yields the spaces that live, the newest first."""
        async for found in pages(self._t, "/v1/spaces", "spaces", {"status": status}):
            yield AsyncSpace(self._t, found)


async def pages(t: AsyncTransport, path: str, name: str, query: Mapping[str, Any]) -> AsyncIterator[Any]:
    """Yields the entries of a list, page by page."""
    cursor: str | None = None
    while True:
        page = await t.json("GET", path, query={**query, "cursor": cursor})
        for entry in page[name]:
            yield entry
        cursor = page.get("next_cursor")
        if not cursor:
            return


class AsyncRun:
    """A run of operations in a space."""

    def __init__(self, transport: AsyncTransport, space: str, message: Json) -> None:
        self._t, self.space_id, self.id = transport, space, str(message["runId"])
        self.status = ""
        """What the run was when it was last asked."""
        self.results: list[Json] = []
        self._take(message)

    def __repr__(self) -> str:
        return f"<run {self.id}, {self.status}>"

    def _take(self, message: Json) -> None:
        self.status, self.results = message["status"], message.get("events") or []

    @property
    def ended(self) -> bool:
        """Whether the run has ended, in whatever way."""
        return self.status in ENDED

    def result(self, operation: str | int) -> Json | None:
        """Returns the result of one operation, by its id or its place, from 0."""
        if isinstance(operation, int):
            return self.results[operation] if -len(self.results) <= operation < len(self.results) else None
        return next((r for r in self.results if r.get("operationId") == operation), None)

    @property
    def _path(self) -> str:
        return f"/v1/spaces/{part(self.space_id)}/runs/{part(self.id)}"

    async def show(self) -> schema.RunShown:
        """Returns everything that the daemon shows of the run."""
        return cast("schema.RunShown", await self._t.json("GET", self._path))

    async def refresh(self) -> AsyncRun:
        """Asks how the run stands."""
        shown: Any = await self.show()
        self._take(shown["result"])
        return self

    async def stream(self, start_at: int | None = None, *, timeout: float | None = None) -> AsyncIterator[Json]:
        """Yields the frames of the run from its beginning until it has ended."""
        async for m in self._t.follow(f"{self._path}/stream", query={"from": start_at}, last_event="complete", timeout=timeout):
            yield {"event": m.event, "id": int(m.id), "data": json.loads(m.data)}

    async def wait(
        self,
        *,
        on_approval: Callable[[Json], Answer | Awaitable[Answer]] | None = None,
        on_stdout: Callable[[str], None] | None = None,
        on_stderr: Callable[[str], None] | None = None,
        timeout: float | None = None,
    ) -> AsyncRun:
        """Waits until the run has ended. Where it waits for a person, ``on_approval`` is asked; without it waiting ends with an ApprovalRequiredError."""
        if self.ended:
            return self
        try:
            await self._follow(on_approval, on_stdout, on_stderr, timeout)
        except TimeoutError as err:
            suggestion = "give more time, wait again, or cancel the run"
            raise TimeoutError(f"the run {self.id} has not ended within {timeout:g} s; it goes on", code="timeout", run_id=self.id, suggestion=suggestion) from err
        return await self.refresh()

    async def _follow(
        self,
        on_approval: Callable[[Json], Answer | Awaitable[Answer]] | None,
        on_stdout: Callable[[str], None] | None,
        on_stderr: Callable[[str], None] | None,
        timeout: float | None,
    ) -> None:
        asked: set[str] = set()
        async for frame in self.stream(timeout=timeout):
            data = frame["data"]
            if frame["event"] == "stdout" and on_stdout:
                on_stdout(printed(data["data"], data["encoding"]))
            elif frame["event"] == "stderr" and on_stderr:
                on_stderr(printed(data["data"], data["encoding"]))
            elif frame["event"] == "event" and data.get("type") == "approvalRequired" and data["approvalId"] not in asked:
                asked.add(data["approvalId"])
                await self.ask(data["approvalId"], data.get("reason") or "a person has to decide first", on_approval)

    async def ask(self, approval: str, reason: str, on_approval: Callable[[Json], Answer | Awaitable[Answer]] | None) -> None:
        """Puts a question of the run to ``on_approval``; raises an ApprovalRequiredError where there is none."""
        found = await self._t.json("GET", f"/v1/approvals/{part(approval)}")
        if found["status"] not in ("pending", "held"):
            return  # somebody was faster
        if on_approval is None:
            raise ApprovalRequiredError(
                reason, code="approval_required", status=409, approval_id=approval, run_id=self.id,
                suggestion=f"answer with client.approvals.approve({approval!r}), or give on_approval",
            )  # fmt: skip
        answer = on_approval(found)
        if not isinstance(answer, str):
            answer = await answer
        if answer != "wait":
            await self._t.json("POST", f"/v1/approvals/{part(approval)}/decide", body={"decision": answer, "action_sha256": found["action_sha256"]})

    async def approve(self, reason: str | None = None) -> AsyncRun:
        """Approves what the run waits for."""
        return await self._resume("approve", reason)

    async def deny(self, reason: str | None = None) -> AsyncRun:
        """Denies what the run waits for; the run goes on with its next operation."""
        return await self._resume("deny", reason)

    async def _resume(self, decision: str, reason: str | None) -> AsyncRun:
        await self.refresh()
        last = next((r for r in reversed(self.results) if r["type"] == "approvalRequired"), None)
        if last is None or self.status != "awaiting_approval":
            raise AgentboxError(f"the run {self.id} waits for nobody; it is {self.status}", code="run_not_waiting", status=409)
        approval = clean({"operationId": last["operationId"], "decision": decision, "reason": reason})
        self._take(await self._t.json("POST", f"{self._path}/resume", body={"approval": approval, "wait_seconds": 0}))
        return self

    async def artifacts(self) -> list[AsyncArtifact]:
        """Lists what the run has left: the files that ``artifacts`` named when it was started, and what its code has shown. They outlive the space."""
        return await kept(self._t, self.id)

    async def cancel(self) -> AsyncRun:
        """Ends the run and every process of it."""
        await self._t.json("POST", f"{self._path}/cancel")
        return await self.refresh()


async def kept(t: AsyncTransport, run: str) -> list[AsyncArtifact]:
    """Lists the artifacts of a run, in the order in which they were made."""
    found: list[AsyncArtifact] = []
    async for a in pages(t, "/v1/artifacts", "artifacts", {"run_id": run, "limit": 100}):
        at = f"/v1/artifacts/{part(a['artifact_id'])}/content"
        digest = str(a.get("sha256", "")).removeprefix("sha256:")
        name = a.get("path") or a["artifact_id"]
        found.append(AsyncArtifact(name, a.get("size_bytes", 0), digest, a.get("mime_type", "application/octet-stream"), t, at, a["artifact_id"]))
    return found[::-1]


@dataclass
class AsyncArtifact:
    """An output of code: a file that a run has kept, a file of a sandbox, or something that code has shown."""

    path: str
    """The path of the file in its space; the id of an artifact that is no file."""
    size: int
    """Bytes of its content."""
    sha256: str
    """The hash of its content, in hexadecimal digits; empty where the caller may not read the file."""
    media_type: str
    """A guess from its name and content."""
    _t: AsyncTransport = field(repr=False)
    _at: str = field(repr=False)
    artifact_id: str | None = None
    """Its id, where it outlives the space."""
    _data: bytes | None = field(default=None, repr=False)

    async def read(self) -> bytes:
        """Returns its content. Raises an OperationError where what comes does not have its hash."""
        import hashlib

        data = (await self._t.send("GET", self._at)).content
        if self.artifact_id and self.sha256 and hashlib.sha256(data).hexdigest() != self.sha256:
            raise OperationError(f"the content of {self.path} is not what its hash says", code="content_corrupt")
        self._data = data
        return data

    async def save(self, local: str | os.PathLike[str]) -> Path:
        """Writes its content to this machine; folders are made."""
        target = Path(local)
        data = await self.read()
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        return target

    async def download(self, local: str | os.PathLike[str] | None = None) -> Path:
        """Writes its content to this machine, by default under its own name in the present folder."""
        return await self.save(local or PurePosixPath(self.path).name)

    def _repr_html_(self) -> str:
        return f"<div>{html.escape(self.path)}, {self.size} bytes, {html.escape(self.media_type)}</div>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/plain": repr(self), "text/html": self._repr_html_()}
        shown = self.media_type.startswith(("image/", "text/")) or self.media_type == "application/json"
        if self._data is not None and shown:  # only what was read is shown: nothing is fetched for a notebook by itself
            bundle |= Display(self.artifact_id or "", self.media_type, False, 1, self._data).as_bundle()
        return bundle


class AsyncSpace:
    """An isolated place where code runs, with its own files. As a context manager it is removed at the end of the block."""

    def __init__(self, transport: AsyncTransport, info: Json) -> None:
        self._t = transport
        self.info = cast("schema.Space", info)
        """What the daemon said of the space when it was last asked."""
        self.id, self.name = str(info["space_id"]), str(info["name"])
        self.files = AsyncFiles(transport, self.id)
        self.ports = AsyncPorts(transport, self.id)

    @property
    def tier(self) -> str:
        return str(cast(Any, self.info)["tier"])

    @property
    def _path(self) -> str:
        return f"/v1/spaces/{part(self.id)}"

    def __repr__(self) -> str:
        name = "" if self.name == self.id else f"{self.name} "
        return f"<space {name}{self.id} in {self.tier}>"

    async def exec(
        self,
        command: str,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        command_ms: int | None = None,
        **options: Any,
    ) -> ExecResult:
        """Runs a command in bash. Raises a PolicyDeniedError or an ApprovalRequiredError where it was not run.

        ``command_ms`` is how long it may take: 1,000 to 3,600,000, 30,000 by default. Options: title, agent, on_approval, on_stdout,
        on_stderr, timeout (seconds), idempotency_key, artifacts (files to keep when it ends, as in ["out/**"]; see ``client.artifacts``).
        """
        operation = clean({"type": "shell", "id": "exec", "command": command, "cwd": cwd, "env": env, "timeout": command_ms})
        options.setdefault("timeout", (command_ms or 300_000) / 1000 + PREPARING)
        run = await self._start("/runs", {"protocolVersion": "1.0", "operations": [operation]}, {"title": command[:200], **options})
        return ExecResult.of(run, shell(run))

    async def code(
        self,
        code: str,
        *,
        language: Literal["python", "javascript", "typescript"] = "python",
        context: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        command_ms: int | None = None,
        **options: Any,
    ) -> CodeResult:
        """Runs code in an interpreter that keeps its variables. Options are those of exec."""
        inside = "javascript" if language == "typescript" else language
        name = context or ("main" if inside == "python" else f"main-{inside}")
        body = clean({"language": inside, "code": code, "cwd": cwd, "env": env, "timeout_ms": command_ms})
        options.setdefault("timeout", (command_ms or 300_000) / 1000 + PREPARING)
        run = await self._start(f"/contexts/{part(name)}/cells", body, {"title": code[:200], **options})
        raw = shell(run)
        displays: list[Display] = []
        for d in cast("list[Json]", raw.get("displays") or []):
            answer = await self._t.send("GET", f"/v1/artifacts/{part(d['artifact_id'])}/content")
            displays.append(Display(d["artifact_id"], d["mime_type"], bool(d.get("result")), int(d["value"]), answer.content))
        return CodeResult.of(run, raw, displays)

    async def run(self, operations: Sequence[Mapping[str, Any]], **options: Any) -> AsyncRun:
        """Runs operations of protocol 1.0 in order and waits for their end. What policy refuses is a result in ``run.results``."""
        return await self._start("/runs", {"protocolVersion": "1.0", "operations": list(operations)}, options)

    async def start(
        self,
        command: str,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        command_ms: int | None = None,
        stdin: bool | None = None,
        pty: tuple[int, int] | None = None,
        tag: str | None = None,
        **options: Any,
    ) -> AsyncProcess:
        """Starts a command in the background and returns at once.

        It runs beside the other runs of the space, without a time limit of its own, until it ends or its space does. ``stdin`` lets it get
        input; ``pty``, the columns and rows, gives it a terminal. Both need a tier with processes. Options: title, agent, retention, artifacts,
        timeout (seconds), idempotency_key.
        """
        if not isinstance(command, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValidationError("start takes a command", code="usage", suggestion="operations are started with begin")
        terminal = {"cols": pty[0], "rows": pty[1]} if pty else None
        operation = clean(
            {"type": "shell", "id": "exec", "command": command, "cwd": cwd, "env": env, "timeout": command_ms, "stdin": stdin, "pty": terminal, "tag": tag}
        )
        body = {"protocolVersion": "1.0", "background": True, "operations": [operation]}
        return AsyncProcess(self._t, await self._begin("/runs", body, {"title": command[:200], **options}, 0), pty is not None)

    async def process(self, run: str) -> AsyncProcess:
        """Finds a command in the background again, by the id of its run."""
        shown = await self._t.json("GET", f"{self._path}/runs/{part(run)}")
        if not shown.get("background"):
            raise ValidationError(f"the run {run} is no command in the background", code="run_not_background", status=400)
        return AsyncProcess(self._t, AsyncRun(self._t, self.id, shown["result"]), "pty" in shown)

    async def processes(self, status: str = "running") -> AsyncIterator[AsyncProcess]:
        """Yields the commands in the background that run, or those with another status, the newest first."""
        async for found in pages(self._t, "/v1/runs", "runs", {"space_id": self.id, "background": True, "status": status}):
            yield await self.process(found["run_id"])

    async def begin(self, operations: Sequence[Mapping[str, Any]], **options: Any) -> AsyncRun:
        """Begins operations and returns at once; ``run.stream()`` yields what happens."""
        return await self._begin("/runs", {"protocolVersion": "1.0", "operations": list(operations)}, options, 0)

    async def _start(self, path: str, body: Json, options: Json) -> AsyncRun:
        live = options.get("on_stdout") or options.get("on_stderr")
        run = await self._begin(path, body, options, 0 if live else 1)
        if run.status == "queued":
            await self._unblock(run, options)
        return await run.wait(**{n: options[n] for n in ("on_approval", "on_stdout", "on_stderr", "timeout") if n in options})

    async def _unblock(self, run: AsyncRun, options: Json) -> None:
        """Looks whether a run waits behind another one that waits for a person; then that question comes first."""
        found = await self._t.json("GET", "/v1/approvals", query={"status": "pending", "space_id": self.id, "limit": 1})
        for question in found["approvals"]:
            if not question.get("run_id") or question["run_id"] == run.id:
                continue
            first = AsyncRun(self._t, self.id, {"runId": question["run_id"], "status": "awaiting_approval"})
            try:
                reason = f"an earlier run of the space waits for a person: {question['title']}"
                await first.ask(question["approval_id"], reason, options.get("on_approval"))
            except BaseException:
                await run.cancel()  # what was just asked for is not left behind
                raise

    async def _begin(self, path: str, body: Json, options: Json, seconds: int) -> AsyncRun:
        agent = {"name": options["agent"]} if options.get("agent") else None
        wanted = clean({"title": options.get("title"), "retention": options.get("retention"), "agent": agent, "artifacts": options.get("artifacts")})
        message = await self._t.json(
            "POST", self._path + path, body={**body, "wait_seconds": seconds, **wanted},
            timeout=options.get("timeout") or seconds + 30, idempotency_key=options.get("idempotency_key"),
        )  # fmt: skip
        return AsyncRun(self._t, self.id, message)

    async def cancel(self, run: str) -> None:
        """Ends a run of the space and every process of it."""
        await self._t.json("POST", f"{self._path}/runs/{part(run)}/cancel")

    async def snapshots(self) -> AsyncIterator[Json]:
        """Yields the snapshots of the files, the newest first."""
        async for found in pages(self._t, f"{self._path}/snapshots", "snapshots", {}):
            yield found

    async def rewind(self, to: str) -> Json:
        """Returns the files to what they were: at a snapshot, after a step, or before a run."""
        return cast(Json, await self._t.json("POST", f"{self._path}/rewind", body={"to": to}))

    async def fork(self, name: str | None = None, *, at: str | None = None, env: Mapping[str, str] | None = None, ttl_seconds: int | None = None) -> AsyncSpace:
        """Makes a space whose files begin as a snapshot of this one, by default as they are now. It inherits no environment."""
        body = clean({"name": name, "at": at, "env": env, "ttl_seconds": ttl_seconds})
        return AsyncSpace(self._t, await self._t.json("POST", f"{self._path}/fork", body=body))

    async def diff(self, from_: str | None = None, to: str | None = None) -> Json:
        """Compares two snapshots, by default the files before the last run with those of now."""
        return cast(Json, await self._t.json("GET", f"{self._path}/diff", query={"from": from_, "to": to}))

    async def contexts(self) -> list[Json]:
        """Lists the interpreters that keep their variables."""
        return cast("JsonList", (await self._t.json("GET", f"{self._path}/contexts"))["contexts"])

    async def delete_context(self, name: str) -> None:
        """Deletes an interpreter with its variables."""
        await self._t.json("DELETE", f"{self._path}/contexts/{part(name)}")

    async def update(self, **change: Any) -> AsyncSpace:
        """Changes name, description, env or metadata."""
        self.info = await self._t.json("PATCH", self._path, body=change)
        self.name = str(self.info["name"])
        return self

    async def extend(self, ttl_seconds: int) -> AsyncSpace:
        """Sets how many seconds the space lives from now."""
        self.info = await self._t.json("POST", f"{self._path}/extend", body={"ttl_seconds": ttl_seconds})
        return self

    async def pause(self, reason: str = "", resume_on_run: bool = False) -> AsyncSpace:
        """Stops the processes of the space until it is resumed.

        They use no processor time, and the time limits of commands stop. A run that is sent meanwhile waits, or resumes the space with
        ``resume_on_run``.
        """
        body: dict[str, Any] = {}
        if reason:
            body["reason"] = reason
        if resume_on_run:
            body["resume_on_run"] = True
        self.info = await self._t.json("POST", f"{self._path}/pause", body=body)
        return self

    async def resume(self, ttl_seconds: int | None = None) -> AsyncSpace:
        """Lets a paused space go on. With ``ttl_seconds`` it lives that long from now."""
        body = {} if ttl_seconds is None else {"ttl_seconds": ttl_seconds}
        self.info = await self._t.json("POST", f"{self._path}/resume", body=body)
        return self

    async def refresh(self) -> AsyncSpace:
        """Asks the daemon what the space is now."""
        self.info = await self._t.json("GET", self._path)
        return self

    async def destroy(self) -> None:
        """Ends the runs and processes of the space and removes its files. Its events stay in the log."""
        self.info = await self._t.json("DELETE", self._path)

    async def __aenter__(self) -> AsyncSpace:
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self.destroy()
        except NotFoundError:
            pass


class AsyncPorts:
    """The ports of a space on which its programs listen."""

    def __init__(self, transport: AsyncTransport, space: str) -> None:
        self._t, self._base = transport, f"/v1/spaces/{part(space)}/ports"

    async def list(self) -> JsonList:
        """Lists the ports on which a program listens, and those that are open."""
        return cast(JsonList, (await self._t.json("GET", self._base))["ports"])

    async def preview(self, port: int, *, ttl_seconds: int | None = None, external: bool | None = None) -> Json:
        """Makes an address of a port. Everybody who has it reaches the program that listens, until it ends.

        ``ttl_seconds`` is an hour unless given. ``external`` lets its pages load from other hosts.
        """
        body = {"ttl_seconds": ttl_seconds, "external": external}
        asked = {name: value for name, value in body.items() if value is not None}
        return cast(Json, await self._t.json("POST", f"{self._base}/{port}/preview", body=asked))

    async def close(self, port: int) -> int:
        """Closes a port: its connections end, and its addresses are not valid any more. Returns how often it was open."""
        return int((await self._t.json("DELETE", f"{self._base}/{port}"))["closed"])


class AsyncFiles:
    """The files of a space. Paths are relative to its top and may hold slashes."""

    def __init__(self, transport: AsyncTransport, space: str) -> None:
        self._t, self._space, self._base = transport, space, f"/v1/spaces/{part(space)}/files"

    def _at(self, path: str) -> str:
        escaped = file_path(path)
        return f"{self._base}/" + ("%2e/archive" if escaped == "archive" else escaped)

    async def watch(
        self, folder: str = "", *, recursive: bool = False, after: int | None = None, on_start: Callable[[], object] | None = None
    ) -> AsyncIterator[Json]:
        """Yields each change of the files in a folder, until the folder is gone or you leave the loop. It tells the changes of everybody.

        An event has ``kind`` (created, changed, removed, renamed or overflow), ``path``, ``type`` and ``cursor``. A rename has ``from``.
        After a lost connection it connects again and yields the changes of the meantime. If these are not known, it yields overflow: list
        the folder again.
        """
        query = {"path": folder or None, "recursive": recursive or None}
        last_id = None if after is None else str(after)
        async for m in self._t.follow(f"/v1/spaces/{part(self._space)}/watch", query=query, last_id=last_id, last_event="ended"):
            data: Json = json.loads(m.data)
            if m.event == "watching":
                if on_start is not None:
                    on_start()
                    on_start = None
            elif m.event != "ended":
                yield {"kind": m.event, **data}
            elif data["reason"] not in ("watched_folder_removed", "space_files_missing"):
                raise AgentboxError(f"the watch of {folder or 'the top'} has ended: {data['reason']}", code=data["reason"])

    async def read(self, path: str) -> bytes:
        """Reads a file."""
        return (await self._t.send("GET", self._at(path))).content

    def artifact(self, path: str, entry: Json) -> AsyncArtifact:
        """Returns a file of the space, as an entry of a list or a difference has it, with its hash and its media type."""
        import mimetypes

        digest = str(entry.get("content_sha256", "")).removeprefix("sha256:")
        kind = mimetypes.guess_type(path, strict=False)[0] or "application/octet-stream"
        return AsyncArtifact(path, int(entry.get("size_bytes", 0)), digest, kind, self._t, self._at(path))

    async def read_text(self, path: str) -> str:
        """Reads a file as UTF-8."""
        return (await self.read(path)).decode()

    async def write(self, path: str, content: bytes | str, *, overwrite: bool | None = None, mode: str | None = None) -> Json:
        """Writes a file, which appears as a whole or not at all; folders are made. ``mode="0755"`` makes it executable."""
        data = content.encode() if isinstance(content, str) else content
        headers = {"Content-Type": "application/octet-stream"}
        return cast(Json, await self._t.json("PUT", self._at(path), query={"overwrite": overwrite, "mode": mode}, content=data, headers=headers))

    async def delete(self, path: str) -> None:
        """Deletes a file or an empty folder."""
        await self._t.json("DELETE", self._at(path))

    async def list(self, folder: str = "", *, recursive: bool = False) -> JsonList:
        """Lists a folder; ``recursive`` also what is in its folders."""
        found = await self._t.json("GET", self._base, query={"path": folder or None, "recursive": recursive or None})
        if found["truncated"]:
            raise AgentboxError("there are more entries than one listing holds", code="listing_truncated", suggestion="list the folders one by one")
        return cast(JsonList, found["entries"])

    async def stat(self, path: str) -> Json | None:
        """Says what lies at a path, or None."""
        clean_path = path.rstrip("/")
        try:
            entries = await self.list(clean_path.rpartition("/")[0])
        except NotFoundError:
            return None
        return next((e for e in entries if e["path"] == clean_path), None)

    async def exists(self, path: str) -> bool:
        """Says whether anything lies at a path."""
        return await self.stat(path) is not None

    async def write_many(self, files: Mapping[str, bytes | str], *, overwrite: bool = True) -> JsonList:
        """Writes many files at once, by their paths. It fails with the first that was refused; the others are written all the same."""
        written: JsonList = []
        names = list(files)
        for at in range(0, len(names), 100):
            parts: Parts = []
            for name in names[at : at + 100]:
                content = files[name]
                parts.append(("file", (name, content.encode() if isinstance(content, str) else content, "application/octet-stream")))
            answer = await self._t.json("POST", self._base, query={"overwrite": overwrite}, files=parts)
            for f in answer["files"]:
                if not f["ok"]:
                    raise from_problem(f["error"]["status"], f["error"])
                written.append(f["entry"])
        return written

    async def archive(self, folder: str = "") -> bytes:
        """Reads a folder with everything in it as a zip file."""
        return (await self._t.send("GET", f"{self._base}/archive", query={"path": folder or None})).content

    async def upload(self, local: str | os.PathLike[str], path: str | None = None) -> JsonList:
        """Writes a file, or a folder with everything in it, of this machine into the space. Links are left out."""
        source = Path(local)
        if source.is_file():
            return [await self.write(path or source.name, source.read_bytes())]
        if not source.is_dir():
            raise AgentboxError(f"there is no file or folder {source}", code="not_found")
        written: JsonList = []
        batch: dict[str, bytes | str] = {}
        size = 0
        for found in sorted(source.rglob("*")):
            if found.is_symlink() or not found.is_file():
                continue
            content = found.read_bytes()
            name = found.relative_to(source).as_posix()
            batch[f"{path}/{name}" if path else name] = content
            size += len(content)
            if len(batch) == 100 or size > 8 << 20:
                written += await self.write_many(batch)
                batch, size = {}, 0
        return written + (await self.write_many(batch) if batch else [])

    async def download(self, path: str, local: str | os.PathLike[str]) -> Paths:
        """Writes a file, or everything below a folder, of the space to this machine. Links are left out."""
        target = Path(local)
        entry = await self.stat(path) if path else {"type": "directory"}
        if entry is None:
            raise NotFoundError(f"there is nothing at {path}", code="file_not_found", status=404)
        if entry["type"] == "file":
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(await self.read(path))
            return [target]
        written: Paths = []
        for e in await self.list(path, recursive=True):
            place = target / (e["path"][len(path) + 1 :] if path else e["path"])
            if not place.resolve().is_relative_to(target.resolve()):
                raise AgentboxError(f"{e['path']} would lie outside of {target}", code="path_invalid")
            if e["type"] == "file":
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(await self.read(e["path"]))
                written.append(place)
        return written


class AsyncApprovals:
    """The questions that wait for a person."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._t = transport

    async def get(self, approval: str) -> Json:
        return cast(Json, await self._t.json("GET", f"/v1/approvals/{part(approval)}"))

    async def list(
        self, status: str = "pending", *, space_id: str | None = None, run_id: str | None = None, room_id: str | None = None
    ) -> AsyncIterator[Json]:
        """Yields questions, the newest first; those that are open unless a status is given."""
        async for found in pages(self._t, "/v1/approvals", "approvals", {"status": status, "space_id": space_id, "run_id": run_id, "room_id": room_id}):
            yield found

    async def approve(self, approval: str, **options: Any) -> Json:
        """Approves exactly what is asked. Options: reason, scope, expires_at, uses, action_sha256."""
        return await self._decide(approval, "approve", options)

    async def deny(self, approval: str, **options: Any) -> Json:
        """Denies what is asked."""
        return await self._decide(approval, "deny", options)

    async def hold(self, approval: str, **options: Any) -> Json:
        """Says that somebody looks into it; a final answer follows."""
        return await self._decide(approval, "hold", options)

    async def _decide(self, approval: str, decision: str, options: Json) -> Json:
        body = {"decision": decision} | {n: v.isoformat() if isinstance(v, datetime) else v for n, v in options.items()}
        return cast(Json, await self._t.json("POST", f"/v1/approvals/{part(approval)}/decide", body=body))

    async def watch(self) -> AsyncIterator[Json]:
        """Yields each open question: those of now first, then each new one. No question is missed and none comes twice."""
        head = await self._t.json("GET", "/v1/events", query={"limit": 1})
        seen: set[str] = set()
        async for found in self.list():
            seen.add(found["approval_id"])
            yield found
        query = {"from_seq": head["next_from_seq"], "event_types": "approval.requested"}
        async for m in self._t.follow("/v1/events/stream", query=query):
            approval = json.loads(m.data).get("entity_id", "")
            if approval and approval not in seen:
                found = await self.get(approval)
                if found["status"] in ("pending", "held"):
                    yield found


class AsyncEvents:
    """The log of the workspace."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._t = transport

    async def list(self, **query: Any) -> Json:
        """Reads a page of events in ascending order. ``next_from_seq`` goes on. Filters are the parameters of GET /v1/events."""
        return cast(Json, await self._t.json("GET", "/v1/events", query=query))

    async def subscribe(self, from_seq: int | None = None, *, after: int | None = None, event_types: Sequence[str] | None = None, **query: Any) -> AsyncIterator[Json]:
        """Yields events as they are recorded. It resumes after a lost connection: nothing is missed, nothing comes twice."""
        query = {**query, "from_seq": from_seq, "event_types": ",".join(event_types) if event_types else None}
        async for m in self._t.follow("/v1/events/stream", query=query, last_id=None if after is None else str(after)):
            yield json.loads(m.data)


class AsyncRooms:
    """The rooms where people and agents talk."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._t = transport

    async def create(self, title: str, **fields: Any) -> Json:
        return cast(Json, await self._t.json("POST", "/v1/rooms", body={"title": title, **fields}))

    async def get(self, room: str) -> Json:
        return cast(Json, await self._t.json("GET", f"/v1/rooms/{part(room)}"))

    async def list(self) -> AsyncIterator[Json]:
        async for found in pages(self._t, "/v1/rooms", "rooms", {}):
            yield found

    async def create_thread(self, room: str, title: str) -> Json:
        return cast(Json, await self._t.json("POST", f"/v1/rooms/{part(room)}/threads", body={"title": title}))

    async def threads(self, room: str) -> AsyncIterator[Json]:
        async for found in pages(self._t, f"/v1/rooms/{part(room)}/threads", "threads", {}):
            yield found

    async def post(self, thread: str, content: str, **fields: Any) -> Json:
        """Posts a message of Markdown into a thread."""
        return cast(Json, await self._t.json("POST", f"/v1/threads/{part(thread)}/messages", body={"content_md": content, **fields}))

    async def messages(self, thread: str) -> AsyncIterator[Json]:
        """Yields the messages of a thread, the newest first."""
        before: str | None = None
        while True:
            page = await self._t.json("GET", f"/v1/threads/{part(thread)}/messages", query={"before": before, "limit": 100})
            for found in page["messages"]:
                yield found
            before = page.get("next_before")
            if not before:
                return

    async def stream(self, room: str, *, after: int | None = None) -> AsyncIterator[Json]:
        """Yields the events of a room as they are recorded."""
        async for m in self._t.follow(f"/v1/streams/rooms/{part(room)}", last_id=None if after is None else str(after)):
            yield json.loads(m.data)
