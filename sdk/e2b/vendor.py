"""A server on loopback that speaks the protocols of two model vendors and plays a fixed conversation.

It answers OpenAI's Responses and Chat Completions, and Anthropic's Messages. So a framework runs with its own client of the vendor, and no test double stands in it.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Step:
    """One answer of the model: a call of a tool, or, without a tool, the last words.

    ``after`` is text that the result of the tool before must hold. A result without it ends the conversation with the status 400.
    """

    text: str = ""
    tool: str = ""
    given: Any = None  # a dictionary is the arguments of a function; a text is the input of a tool that takes free text
    after: str = ""


@dataclass
class Conversation:
    """What the model says next, and which results of tools it was given."""

    steps: list[Step]
    results: list[str] = field(default_factory=list)
    tools: set[str] = field(default_factory=set)

    def next(self, results: list[str], offered: set[str]) -> Step:
        if len(self.results) == len(self.steps):
            raise ValueError("the conversation has ended")
        step = self.steps[len(self.results)]
        last = results[-1] if results else ""
        self.results.append(last)
        self.tools |= offered
        if step.after not in last:
            raise ValueError(f"the result of the tool is {last!r}, want {step.after!r} in it")
        if step.tool and step.tool not in offered:
            raise ValueError(f"{step.tool} is not offered; offered are {sorted(offered)}")
        return step


class Vendor:
    """The server. ``url`` is its address; use it as a context manager."""

    def __init__(self, *steps: Step) -> None:
        self.conversation = Conversation(list(steps))
        told = self.conversation

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answers = {"/v1/responses": openai, "/v1/chat/completions": chat, "/v1/messages": anthropic}
                try:
                    status, answer = 200, answers[self.path.partition("?")[0]](asked, told)
                except (KeyError, ValueError) as e:
                    status, answer = 400, {"type": "error", "error": {"type": "invalid_request_error", "message": str(e)}}
                raw = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Vendor:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def text_of(content: Any) -> str:
    """Reads a result of a tool, which is text or a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or part.get("image_url") or f"[{part['type']}]" for part in content)


def openai(asked: dict[str, Any], told: Conversation) -> dict[str, Any]:
    """Answers a request of OpenAI's Responses."""
    results = [text_of(i["output"]) for i in asked["input"] if str(i.get("type", "")).endswith("_call_output")]
    step = told.next(results, {t.get("name", t["type"]) for t in asked.get("tools", [])})
    call = f"call_{len(told.results)}"
    if not step.tool:
        said = {"type": "output_text", "text": step.text, "annotations": []}
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [said]}
    elif isinstance(step.given, str):
        item = {"type": "custom_tool_call", "id": "ctc_" + call, "call_id": call, "name": step.tool, "input": step.given}
    else:
        item = {"type": "function_call", "id": "fc_" + call, "call_id": call, "name": step.tool, "arguments": json.dumps(step.given)}
    usage = {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 1, "output_tokens_details": {"reasoning_tokens": 0}}
    return {
        "id": "resp_" + call, "object": "response", "created_at": 0, "model": asked["model"], "status": "completed", "output": [item],
        "usage": usage | {"total_tokens": 2}, "parallel_tool_calls": False, "tool_choice": "auto", "tools": [],
    }


def chat(asked: dict[str, Any], told: Conversation) -> dict[str, Any]:
    """Answers a request of OpenAI's Chat Completions, of an agent that writes code and tells what came of it."""
    heard = [text_of(m["content"] or "") for m in asked["messages"] if m["role"] == "user"]
    step = told.next([text for text in heard if "Observation:" in text or "Error:" in text], set())
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": step.text}}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"id": f"chat_{len(told.results)}", "object": "chat.completion", "created": 0, "model": asked["model"], "choices": [choice], "usage": usage}


def anthropic(asked: dict[str, Any], told: Conversation) -> dict[str, Any]:
    """Answers a request of Anthropic's Messages."""
    parts = [p for m in asked["messages"] if isinstance(m["content"], list) for p in m["content"]]
    results = [text_of(p["content"]) for p in parts if p["type"] == "tool_result"]
    step = told.next(results, {t["name"] for t in asked.get("tools", [])})
    said: dict[str, Any] = {"type": "text", "text": step.text}
    if step.tool:
        said = {"type": "tool_use", "id": f"toolu_{len(told.results)}", "name": step.tool, "input": step.given}
    return {
        "id": f"msg_{len(told.results)}", "type": "message", "role": "assistant", "model": asked["model"], "content": [said],
        "stop_reason": "tool_use" if step.tool else "end_turn", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    }
