"""A server that speaks the wire of chat completions, as OpenAI's, and plays a fixed conversation: the scripted model of agents."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Said = dict[str, Any]
"""A part of an answer: words (``say``), or the call of a ``tool`` with ``arguments``. ``$LAST`` in words stands for the last text of a person."""

ADDING: list[list[Said]] = [
    [{"say": "I add them. "}, {"tool": "code", "arguments": {"language": "javascript", "code": "let n = 0; for (let i = 1; i <= 100; i++) n += i; n"}}],
    [{"tool": "createFile", "arguments": {"path": "sum.txt", "content": "5050\n", "overwrite": True}}],
]
"""The conversation of an agent that adds numbers by a program. Its report is ``the sum is 5050``."""


def text_of(content: Any) -> str:
    return "".join(p.get("text", "") for p in content) if isinstance(content, list) else content or ""


class Vendor:
    """The server. ``answers`` are the parts of each answer of a conversation; every answer after the last one is ``report``."""

    def __init__(self, answers: list[list[Said]], report: str) -> None:
        self.asked: list[dict[str, Any]] = []
        told = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                told.asked.append(asked)
                turn = sum(m["role"] == "assistant" for m in asked["messages"])
                last = next((text_of(m["content"]) for m in reversed(asked["messages"]) if m["role"] == "user"), "")
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                calls = 0
                for said in answers[turn] if turn < len(answers) else [{"say": report}]:
                    for word in re.findall(r"\S+\s*|\s+", said.get("say", "").replace("$LAST", last)):
                        self.chunk(asked, [{"index": 0, "delta": {"role": "assistant", "content": word}, "finish_reason": None}])
                    if "tool" in said:
                        function = {"name": said["tool"], "arguments": json.dumps(said["arguments"])}
                        call = {"index": calls, "id": f"call_{turn}_{calls}", "type": "function", "function": function}
                        self.chunk(asked, [{"index": 0, "delta": {"role": "assistant", "tool_calls": [call]}, "finish_reason": None}])
                        calls += 1
                self.chunk(asked, [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}])
                self.chunk(asked, [], {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15})
                self.wfile.write(b"data: [DONE]\n\n")

            def chunk(self, asked: Any, choices: list[Any], usage: Any = None) -> None:
                made = {"id": "c", "object": "chat.completion.chunk", "model": asked["model"], "choices": choices, "usage": usage}
                self.wfile.write(b"data: " + json.dumps(made).encode() + b"\n\n")

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Vendor:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
