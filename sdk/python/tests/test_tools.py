"""The tools, with the frameworks themselves where they are installed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from agentbox import Agentbox, Space
from agentbox.tools import SpaceTools, langchain_tools, openai_agents_tools, pydantic_ai_toolset


@pytest.fixture
def space(client: Agentbox) -> Iterator[Space]:
    with client.spaces.create() as s:
        yield s


def test_a_model_gets_answers_and_never_exceptions(space: Space) -> None:
    tools = SpaceTools(space, max_characters=1000)
    assert tools.run_command("echo hi; exit 2") == "hi\nexit code 2"
    assert tools.run_command("sudo id").startswith("denied: ")
    assert "\nrule: " in tools.run_command("sudo id")
    assert "characters left out" in tools.run_command("seq 100000")
    assert tools.run_python("6 * 7") == "42"
    assert tools.write_file("n.txt", "note") == "wrote n.txt, 4 bytes"
    assert tools.read_file("n.txt") == "note"
    assert "n.txt\t4" in tools.list_files()
    assert tools.read_file("none").startswith("error: ")
    tools.write_file("old/a", "x")
    assert "a person had to decide" in SpaceTools(space, timeout=1).run_command("rm -r old")
    assert SpaceTools(space, on_approval=lambda _: "deny").run_command("rm -r old").startswith("denied: ")
    assert SpaceTools(space, on_approval=lambda _: "approve").run_command("rm -r old") == ""


def test_langchain(space: Space) -> None:
    found = {t.name: t for t in langchain_tools(space)}
    assert found["run_command"].invoke({"command": "echo hi"}) == "hi"
    assert "bash" in found["run_command"].description


async def test_openai_agents(space: Space) -> None:
    from agents.tool_context import ToolContext

    found = {t.name: t for t in openai_agents_tools(space)}
    arguments = json.dumps({"code": "6 * 7"})
    context: Any = ToolContext(None, tool_name="run_python", tool_call_id="1", tool_arguments=arguments)
    assert await found["run_python"].on_invoke_tool(context, arguments) == "42"


async def test_pydantic_ai(space: Space) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        last = messages[-1].parts[-1]
        if last.part_kind == "tool-return":
            return ModelResponse(parts=[TextPart(f"it is {last.content}")])
        return ModelResponse(parts=[ToolCallPart("run_command", {"command": "echo $((6*7))"})])

    agent = Agent(FunctionModel(model), toolsets=[pydantic_ai_toolset(space)])
    assert (await agent.run("compute")).output == "it is 42"
