"""Gives a space to a model as tools. A refusal is an answer that tells the model what to do instead; it never ends the agent's loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._sync.client import Space
from ._wire import Json
from .errors import AgentboxError, ApprovalRequiredError, PolicyDeniedError, TimeoutError
from .results import Answer

if TYPE_CHECKING:
    from agents import FunctionTool
    from langchain_core.tools import BaseTool
    from pydantic_ai.toolsets import FunctionToolset

__all__ = ["SpaceTools", "langchain_tools", "openai_agents_tools", "pydantic_ai_toolset", "told"]


def told(err: AgentboxError) -> str:
    """Says an error in the one form that a model reads: what was refused, by which rule, and what to do instead."""
    if isinstance(err, ApprovalRequiredError):
        kind = f"waits for a person ({err.approval_id})"
    else:
        kind = "denied" if isinstance(err, PolicyDeniedError) else "error"
    return f"{kind}: {err.message}\nrule: {err.code}" + (f"\ninstead: {err.suggestion}" if err.suggestion else "")


class SpaceTools:
    """What a model may do in a space. Each method is a tool; its docstring is what the model reads."""

    def __init__(
        self,
        space: Space,
        *,
        max_characters: int = 30_000,
        on_approval: Callable[[Json], Answer] = lambda _: "wait",
        timeout: float = 300,
    ) -> None:
        """Where policy asks a person, ``on_approval`` is asked; by default a call waits for an answer from elsewhere.

        A call that has not ended within ``timeout`` seconds is cancelled, and the model is told so.
        """
        self._space, self._most = space, max_characters
        self._options: dict[str, Any] = {"on_approval": on_approval, "timeout": timeout}

    def _answer(self, work: Callable[[], str]) -> str:
        try:
            text = work()
        except TimeoutError as err:
            if err.run_id:
                self._space.cancel(err.run_id)
            return told(TimeoutError("it did not end in time and was cancelled; perhaps a person had to decide and did not", code=err.code))
        except AgentboxError as err:
            return told(err)
        if len(text) <= self._most:
            return text
        half = self._most // 2
        return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"

    def run_command(self, command: str) -> str:
        """Run a command in bash, in the folder of the space. There is no network."""

        def work() -> str:
            done = self._space.exec(command, **self._options)
            said = [done.stdout.rstrip("\n"), f"stderr:\n{done.stderr}" if done.stderr else "", "" if done.ok else f"exit code {done.exit_code}"]
            return "\n".join(s for s in [*said, f"ended at its limit {done.limit}" if done.limit else ""] if s)

        return self._answer(work)

    def run_python(self, code: str) -> str:
        """Run Python in an interpreter that keeps its variables. The value of the last line comes back."""

        def work() -> str:
            done = self._space.code(code, **self._options)
            shown = [f"shown: {d.mime_type}, {len(d.data)} bytes" for d in done.displays if not d.mime_type.startswith("text/plain")]
            said = [done.stdout.rstrip("\n"), *shown, f"stderr:\n{done.stderr}" if done.stderr else "", "" if done.ok else f"exit code {done.exit_code}"]
            return "\n".join(s for s in said if s)

        return self._answer(work)

    def read_file(self, path: str) -> str:
        """Read a text file of the space. The path is relative to the top of the space."""
        return self._answer(lambda: self._space.files.read_text(path))

    def write_file(self, path: str, content: str) -> str:
        """Write a text file of the space, as a whole. The path is relative to the top of the space."""

        def work() -> str:
            entry = self._space.files.write(path, content)
            return f"wrote {entry['path']}, {entry['size_bytes']} bytes"

        return self._answer(work)

    def list_files(self, folder: str = "") -> str:
        """List a folder of the space with everything in it; the top unless a folder is given."""

        def work() -> str:
            found = [e for e in self._space.files.list(folder, recursive=True) if not e["path"].startswith(".agentbox")]
            return "\n".join(e["path"] + ("/" if e["type"] == "directory" else f"\t{e['size_bytes']}") for e in found) or "there are no files"

        return self._answer(work)

    @property
    def all(self) -> list[Callable[..., str]]:
        """The tools as functions, for frameworks that read signature and docstring."""
        return [self.run_command, self.run_python, self.read_file, self.write_file, self.list_files]


def langchain_tools(space: Space, **options: Any) -> list[BaseTool]:
    """The tools of a space for LangChain and LangGraph."""
    from langchain_core.tools import StructuredTool

    return [StructuredTool.from_function(f) for f in SpaceTools(space, **options).all]


def openai_agents_tools(space: Space, **options: Any) -> list[FunctionTool]:
    """The tools of a space for the OpenAI Agents SDK: ``Agent(tools=openai_agents_tools(space))``."""
    from agents import function_tool

    return [function_tool(f) for f in SpaceTools(space, **options).all]


def pydantic_ai_toolset(space: Space, **options: Any) -> FunctionToolset[Any]:
    """The tools of a space for Pydantic AI: ``Agent(model, toolsets=[pydantic_ai_toolset(space)])``."""
    from pydantic_ai.toolsets import FunctionToolset

    return FunctionToolset(SpaceTools(space, **options).all)
