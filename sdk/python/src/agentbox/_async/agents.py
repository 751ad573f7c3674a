"""Agents: the blueprints that define them, the models that they ask, and their runs."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from .._wire import Json, JsonList, clean, part, text_of
from ..errors import ConflictError, TimeoutError, ValidationError
from ..results import Answer
from .client import AsyncArtifact, AsyncRun, AsyncTransport, kept, pages

if TYPE_CHECKING:
    from .. import schema

__all__ = ["AsyncAgentRun", "AsyncAgents", "AsyncBlueprints", "AsyncModels"]

RunStatus = Literal["queued", "running", "awaiting_approval", "succeeded", "failed", "cancelled"]
"""How the run of an agent stands."""

MAX_STEER = 64 << 10
"""The most that ``steer`` says, in bytes."""

Artifacts = list[AsyncArtifact]


class AsyncBlueprints:
    """The blueprints of the workspace: each is the definition of an agent, and its text is YAML."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._t = transport

    async def check(self, text: str) -> schema.BlueprintChecked:
        """Says everything that is wrong with a text, and which references have no pin."""
        return cast("schema.BlueprintChecked", await self._t.json("POST", "/v1/blueprints/check", body={"text": text}))

    async def lock(self, text: str) -> str:
        """Returns the text with pins for all that it refers to. Write it where the blueprint is kept."""
        return str((await self._t.json("POST", "/v1/blueprints/lock", body={"text": text}))["text"])

    async def register(self, name: str, text: str) -> schema.BlueprintEntry:
        """Registers a blueprint under its name, or a new version of it. An agent starts only where everything is pinned: see ``lock``."""
        return cast("schema.BlueprintEntry", await self._t.json("PUT", f"/v1/blueprints/{part(name)}", body={"text": text}))

    async def list(self) -> AsyncIterator[schema.BlueprintEntry]:
        """Yields the registered blueprints, by name."""
        async for found in pages(self._t, "/v1/blueprints", "blueprints", {}):
            yield found

    async def get(self, name: str, version: int | None = None) -> schema.BlueprintShown:
        """Shows a blueprint with the text of a version, the newest unless one is given."""
        return cast("schema.BlueprintShown", await self._t.json("GET", f"/v1/blueprints/{part(name)}", query={"version": version}))

    async def remove(self, name: str, reason: str | None = None) -> None:
        """Takes a blueprint off the list. Its versions can still be read."""
        await self._t.json("DELETE", f"/v1/blueprints/{part(name)}", query={"reason": reason})


class AsyncModels:
    """The models that agents ask, and what they were used for."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._t = transport

    async def list(self) -> schema.ModelList:
        """Lists the models with their routes, budgets and the names of keys."""
        return cast("schema.ModelList", await self._t.json("GET", "/v1/models"))

    async def get(self, model: str) -> schema.ModelShown:
        return cast("schema.ModelShown", await self._t.json("GET", f"/v1/models/{part(model)}"))

    async def put(self, name: str, **spec: Any) -> schema.ModelShown:
        """Adds a model to the catalogue, or changes it. Fields are those of the request: model, provider, dialect, base_url, key, classes and more."""
        return cast("schema.ModelShown", await self._t.json("PUT", f"/v1/models/{part(name)}", body=clean(spec)))

    async def remove(self, model: str, reason: str | None = None) -> None:
        await self._t.json("DELETE", f"/v1/models/{part(model)}", query={"reason": reason})

    async def test(self, model: str, *, timeout: float = 300) -> schema.Tested:
        """Asks a model a few short questions, and says what it can do. It takes as long as the model needs."""
        return cast("schema.Tested", await self._t.json("POST", f"/v1/models/{part(model)}/test", timeout=timeout, once=True))

    async def set_key(self, name: str, value: str) -> None:
        """Seals a key for endpoints under a name. Nothing shows it again."""
        await self._t.json("PUT", f"/v1/model-keys/{part(name)}", body={"value": value}, once=True)

    async def remove_key(self, name: str) -> None:
        """Destroys a key."""
        await self._t.json("DELETE", f"/v1/model-keys/{part(name)}", once=True)

    async def configure(self, *, routes: Sequence[Mapping[str, Any]], budgets: Sequence[Mapping[str, Any]]) -> schema.ModelSettings:
        """Sets which models answer, and the budgets. Both lists replace those that are there."""
        body = {"routes": list(routes), "budgets": list(budgets)}
        return cast("schema.ModelSettings", await self._t.json("PUT", "/v1/model-settings", body=body))

    async def usage(
        self,
        scope: Literal["workspace", "run", "agent", "room", "model"] | None = None,
        *,
        day: str | None = None,
        run_id: str | None = None,
        limit: int | None = None,
    ) -> schema.UsageList:
        """Says what models were used for: requests, tokens and costs.

        It counts each day of the workspace unless ``scope`` is given. ``day`` is a day of UTC, as in 2026-11-28. ``limit`` is 1 to 1,000
        entries, 100 by default.
        """
        query = {"scope": scope, "day": day, "run_id": run_id, "limit": limit}
        return cast("schema.UsageList", await self._t.json("GET", "/v1/usage", query=query))


def pictured(picture: bytes | os.PathLike[str]) -> Json:
    """Returns a picture as a task has it."""
    if isinstance(picture, bytes):
        return {"data": text_of(picture)}
    return {"data": text_of(Path(picture).read_bytes()), "name": Path(picture).name}


class AsyncAgents:
    """The agents that the blueprints of the workspace define."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._t = transport

    async def start(
        self,
        blueprint: str,
        task: str,
        *,
        after: AsyncAgentRun | str | None = None,
        model: str | None = None,
        pictures: Sequence[bytes | os.PathLike[str]] | None = None,
        space_id: str | None = None,
        room_id: str | None = None,
        thread_id: str | None = None,
        title: str | None = None,
        version: int | None = None,
        idempotency_key: str | None = None,
    ) -> AsyncAgentRun:
        """Gives an agent a task, and returns its run at once. The daemon executes it.

        ``after`` is the run of an agent that has ended: the new one goes on with its conversation, in its space, room and thread unless others
        are named. ``model`` is the model that answers, by its name in the catalogue; that of the blueprint unless given. ``pictures`` are
        at most 8 that belong to the task, as bytes or paths of files: PNG, JPEG, GIF or WebP of at most 3 MiB, for a model that takes pictures. They
        become artifacts of the run. Without ``space_id`` the agent works in a new space, as the blueprint says. ``version`` is that of the blueprint, the newest unless given.
        """
        earlier = after.id if isinstance(after, AsyncAgentRun) else after
        body: dict[str, Any] = {"task": task, "after_run_id": earlier, "model": model, "space_id": space_id}
        body |= {"room_id": room_id, "thread_id": thread_id}
        body |= {"title": title, "version": version, "pictures": None if pictures is None else [pictured(p) for p in pictures]}
        path = f"/v1/blueprints/{part(blueprint)}/runs"
        return AsyncAgentRun(self._t, await self._t.json("POST", path, body=clean(body), idempotency_key=idempotency_key))

    async def run(
        self,
        blueprint: str,
        task: str,
        *,
        on_text: Callable[[str], object] | None = None,
        on_again: Callable[[], object] | None = None,
        on_tool: Callable[[Json], object] | None = None,
        on_approval: Callable[[Json], Answer | Awaitable[Answer]] | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> AsyncAgentRun:
        """Gives an agent a task, and waits until its run has ended. ``report`` of the run is what the agent answered.

        Options are those of ``start``, the others those of ``AgentRun.wait``.
        """
        run = await self.start(blueprint, task, **options)
        return await run.wait(on_text=on_text, on_again=on_again, on_tool=on_tool, on_approval=on_approval, timeout=timeout)

    async def get(self, run: str) -> AsyncAgentRun:
        """Finds the run of an agent by its id."""
        shown = await self._t.json("GET", f"/v1/runs/{part(run)}")
        if shown.get("work") != "agent":
            raise ValidationError(f"{run} is not the run of an agent", code="not_an_agent", status=400)
        return AsyncAgentRun(self._t, shown)

    async def list(self, *, blueprint: str | None = None, status: RunStatus | None = None) -> AsyncIterator[AsyncAgentRun]:
        """Yields the runs of agents, the newest first."""
        query = {"work": None if blueprint else "agent", "blueprint": blueprint, "status": status}
        async for found in pages(self._t, "/v1/runs", "runs", query):
            yield AsyncAgentRun(self._t, found)


class AsyncAgentRun:
    """The run in which an agent works on a task."""

    def __init__(self, transport: AsyncTransport, info: Json) -> None:
        self._t = transport
        self.info = info
        """What the daemon said of the run when it was last asked."""
        self.id = str(info["run_id"])

    def __repr__(self) -> str:
        return f"<agent run {self.id}, {self.status}>"

    @property
    def status(self) -> RunStatus:
        """How the run stood when it was last asked."""
        return cast("RunStatus", self.info["status"])

    @property
    def ended(self) -> bool:
        """Whether the run has ended, in whatever way."""
        return self.status in ("succeeded", "failed", "cancelled")

    @property
    def report(self) -> str | None:
        """What the agent answered; None when the run did not succeed."""
        output: Json = self._reported.get("output") or {}
        return str(output["report"]) if self.status == "succeeded" and "report" in output else None

    @property
    def error(self) -> str | None:
        """Why the run has failed or was stopped."""
        return self._reported.get("message") or self.info.get("error")

    @property
    def _reported(self) -> Json:
        return self.info.get("reported") or {}

    @property
    def _path(self) -> str:
        return f"/v1/runs/{part(self.id)}"

    async def refresh(self) -> AsyncAgentRun:
        """Asks how the run stands."""
        self.info = await self._t.json("GET", self._path)
        return self

    async def stream(self, start_at: int | None = None, *, timeout: float | None = None) -> AsyncIterator[schema.StreamAnyRunFrame]:
        """Yields the frames of the run from its beginning until it has ended.

        ``delta`` is a piece of the model's answer, ``operation`` a tool call that begins, ``event`` what became of it. It resumes after a lost
        connection: nothing is missed and nothing comes twice.
        """
        async for m in self._t.follow(f"{self._path}/stream", query={"from": start_at}, last_event="complete", timeout=timeout):
            yield cast("schema.StreamAnyRunFrame", {"event": m.event, "id": int(m.id), "data": json.loads(m.data)})

    async def wait(
        self,
        *,
        on_text: Callable[[str], object] | None = None,
        on_again: Callable[[], object] | None = None,
        on_tool: Callable[[Json], object] | None = None,
        on_approval: Callable[[Json], Answer | Awaitable[Answer]] | None = None,
        timeout: float | None = None,
    ) -> AsyncAgentRun:
        """Waits until the run has ended. It goes on when ``timeout``, in seconds, ends the waiting.

        ``on_text`` gets the text of the model's answers as it comes. ``on_again`` is told that the text since the last tool call does not
        count, because the model is asked again. ``on_tool`` gets the ``id``, ``tool`` and ``summary`` of each tool call that begins.
        ``on_approval`` is asked when the agent waits for a person; without it the run waits until somebody answers elsewhere.
        """
        if self.ended:
            return await self.refresh()
        asked: set[str] = set()
        try:
            async for frame in self.stream(timeout=timeout):
                data: Json = cast(Any, frame)["data"]
                if frame["event"] == "delta":
                    if data.get("again"):
                        if on_again:
                            on_again()
                    elif data["type"] == "text" and data.get("text") and on_text:
                        on_text(data["text"])
                elif frame["event"] == "operation" and "operationId" in data and on_tool:
                    on_tool({"id": data["operationId"], "tool": data["type"], "summary": data.get("summary", "")})
                elif frame["event"] == "event" and data.get("type") == "approvalRequired" and on_approval and data["approvalId"] not in asked:
                    asked.add(data["approvalId"])
                    waiting = AsyncRun(self._t, "", {"runId": self.id, "status": "awaiting_approval"})
                    await waiting.ask(data["approvalId"], data.get("reason") or "a person has to decide first", on_approval)
        except TimeoutError as err:
            suggestion = "give more time, wait again, or stop the run"
            raise TimeoutError(f"the agent has not ended {self.id} within {timeout:g} s; it goes on", code="timeout", run_id=self.id, suggestion=suggestion) from err
        return await self.refresh()

    async def steer(self, text: str) -> Json:
        """Tells the agent something before its next turn, by a message in the thread of the run. What it does meanwhile goes on."""
        if not text.strip():
            raise ValidationError("say what the agent is to be told", code="usage")
        if len(text.encode()) > MAX_STEER:
            raise ValidationError(f"a message has at most {MAX_STEER} bytes", code="usage", suggestion="put what is longer into a file of the space")
        await self.refresh()
        if self.ended:
            raise ConflictError(
                f"the run is {self.status}; nobody would hear it", code="run_ended", status=409,
                suggestion=f"go on with agents.start(blueprint, task, after={self.id!r})",
            )  # fmt: skip
        thread = self.info.get("thread_id")
        if not thread:
            raise ConflictError("the run has no thread, because its requester may not begin one", code="run_without_thread", status=409)
        return cast(Json, await self._t.json("POST", f"/v1/threads/{part(thread)}/messages", body={"content_md": text}))

    async def stop(self, reason: str | None = None) -> AsyncAgentRun:
        """Ends the run, and what it executes in its space."""
        await self._t.json("POST", f"{self._path}/cancel", body=clean({"reason": reason}))
        return await self.refresh()

    async def calls(self) -> JsonList:
        """Lists the tool calls of the agent, in the order in which they were made."""
        found: JsonList = []
        async for call in pages(self._t, "/v1/toolcalls", "tool_calls", {"run_id": self.id, "limit": 100}):
            found.append(call)
        return found[::-1]

    async def artifacts(self) -> Artifacts:
        """Lists what the run and its tool calls have left, such as the charts that its code has shown. They outlive the space."""
        found = await kept(self._t, self.id)
        for call in await self.calls():
            if call.get("child_run_id"):
                found += await kept(self._t, call["child_run_id"])
        return found

    async def usage(self) -> schema.ModelUsed | None:
        """Says what models cost for this run: requests, tokens and money; None before the first request."""
        answer = await self._t.json("GET", "/v1/usage", query={"scope": "run", "run_id": self.id, "limit": 1})
        return cast("schema.ModelUsed", answer["usage"][0]) if answer["usage"] else None
