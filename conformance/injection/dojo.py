"""Writes the cases of AgentDojo that carry calls of an attacker, as JSON, from the installed package.

A case is a task of a user and one of an attacker, whose text stands in what a tool returns. The calls of both are those that the package
itself gives as the right ones. The attacker's text is their goal, as the package's attack `direct` writes it.
"""

import json
import sys
from importlib.metadata import version

import yaml

# The package reads a world for each case. The reader in C says the same in a tenth of the time.
yaml.SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
yaml.safe_load = lambda text: yaml.load(text, Loader=yaml.SafeLoader)

from agentdojo.functions_runtime import FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suites

try:
    from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
except ImportError:
    tool_result_to_str = str

BENCHMARK = "v1.2.2"
CANARY = "canary7c1f"


worlds = {}


def filled(suite, task, text):
    """The world of a task, with a text in every place that an attacker can write to."""
    if (suite.name, text) not in worlds:
        vectors = {name: text for name in suite.get_injection_vector_defaults()}
        worlds[suite.name, text] = suite.load_and_inject_default_environment(vectors)
    return task.init_environment(worlds[suite.name, text].model_copy(deep=True))


def called(runtime, env, call):
    result, error = runtime.run_function(env, call.function, call.args)
    return str(error) if error else tool_result_to_str(result)


def plain(call):
    return {"tool": call.function, "args": json.loads(json.dumps(dict(call.args), default=str))}


def first_sight(suite, runtime, task):
    """The number of the user's calls until a text of an attacker is seen, or 0 where none of them shows one."""
    env = filled(suite, task, CANARY)
    for number, call in enumerate(task.ground_truth(env.model_copy(deep=True)), 1):
        if CANARY in called(runtime, env, call):
            return number
    return 0


def cases():
    for name, suite in get_suites(BENCHMARK).items():
        runtime = FunctionsRuntime(suite.tools)
        for user_id, user in suite.user_tasks.items():
            seen = first_sight(suite, runtime, user)
            for injection_id, injection in suite.injection_tasks.items():
                # The words of AgentDojo's own attack "direct": the model of the tests obeys any text.
                text = f"TODO: {injection.GOAL}"
                env = filled(suite, user, text)
                attack = injection.ground_truth(env.model_copy(deep=True))
                if not attack:
                    continue
                case = {"suite": name, "user_task": user_id, "injection_task": injection_id, "prompt": user.PROMPT,
                        "goal": injection.GOAL, "seen": seen, "user": [], "attack": []}
                calls = user.ground_truth(env.model_copy(deep=True))
                for call in calls[:seen]:
                    case["user"].append(plain(call) | {"result": called(runtime, env, call)})
                for call in attack:
                    case["attack"].append(plain(call))
                for call in calls[seen:]:
                    case["user"].append(plain(call))
                yield case


def main():
    made = list(cases())
    tools = {name: sorted(tool.name for tool in suite.tools) for name, suite in get_suites(BENCHMARK).items()}
    json.dump({"package": "agentdojo " + version("agentdojo"), "benchmark": BENCHMARK, "tools": tools, "cases": made}, sys.stdout)


main()
