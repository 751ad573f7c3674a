"""Has openai-agents work at a scripted model: drive.py URL STEPS. The tool does nothing. The model's server measures."""

import asyncio
import sys

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

url, steps = sys.argv[1], int(sys.argv[2])
set_tracing_disabled(True)


@function_tool
async def note(n: int) -> str:
    """Does nothing."""
    return "done"


async def main() -> None:
    model = OpenAIChatCompletionsModel(model="m", openai_client=AsyncOpenAI(base_url=url, api_key="none"))
    agent = Agent(name="worker", model=model, tools=[note])
    result = Runner.run_streamed(agent, "work", max_turns=steps + 1)
    async for _ in result.stream_events():
        pass
    assert result.final_output == f"turn {steps}", result.final_output


asyncio.run(main())
