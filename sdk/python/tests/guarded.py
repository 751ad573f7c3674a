"""An MCP server over HTTP that takes the tokens of a login only. It is the issuer of its tokens, too."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit


class Guarded:
    """The server, with one tool, ``echo``. ``secrets`` are all codes and tokens that it gave."""

    def __init__(self) -> None:
        self.secrets: list[str] = []
        self.asked: dict[str, dict[str, str]] = {}
        """The request of each code that was not exchanged."""
        told = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                told.page(self, "")

            def do_POST(self) -> None:
                told.page(self, self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode())

            def do_DELETE(self) -> None:
                self.answer(405, {})

            def answer(self, status: int, body: Any, **headers: str) -> None:
                raw = b"" if body is None else json.dumps(body).encode()
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", "Content-Length": str(len(raw)), **headers}.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                self.wfile.write(raw)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self._server.server_port}"
        self.url = f"{self.base}/mcp"

    def secret(self, kind: str) -> str:
        self.secrets.append(f"{kind}-{uuid.uuid4()}")
        return self.secrets[-1]

    def page(self, to: Any, body: str) -> None:
        base, at = self.base, urlsplit(to.path)
        query = dict(parse_qsl(at.query))
        match f"{to.command} {at.path}":
            case "GET /.well-known/oauth-protected-resource/mcp":
                to.answer(200, {"resource": self.url, "authorization_servers": [base], "scopes_supported": ["tools"]})
            case "GET /.well-known/oauth-authorization-server":
                ends = {f"{end}_endpoint": f"{base}/{path}" for end, path in (("authorization", "authorize"), ("token", "token"), ("registration", "register"))}
                to.answer(200, ends | {
                    "issuer": base, "response_types_supported": ["code"], "grant_types_supported": ["authorization_code", "refresh_token"],
                    "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["none"],
                    "authorization_response_iss_parameter_supported": True,
                })  # fmt: skip
            case "POST /register":
                to.answer(201, {**json.loads(body), "client_id": "client-1"})
            case "GET /authorize":
                code = self.secret("code")
                self.asked[code] = query
                to.answer(302, {}, Location=query["redirect_uri"] + "?" + urlencode({"code": code, "state": query["state"], "iss": base}))
            case "POST /token":
                given = dict(parse_qsl(body))
                wanted = self.asked.pop(given.get("code", ""), {}).get("code_challenge")
                challenge = base64.urlsafe_b64encode(hashlib.sha256(given.get("code_verifier", "").encode()).digest()).decode().rstrip("=")
                if wanted != challenge:
                    to.answer(400, {"error": "invalid_grant"})
                    return
                tokens = {"access_token": self.secret("access"), "refresh_token": self.secret("refresh")}
                to.answer(200, tokens | {"token_type": "Bearer", "expires_in": 3600, "scope": "tools"})
            case "POST /mcp":
                token = to.headers.get("Authorization", "").removeprefix("Bearer ")
                if not token.startswith("access-") or token not in self.secrets:
                    to.answer(401, {}, WWW_Authenticate=f'Bearer resource_metadata="{base}/.well-known/oauth-protected-resource/mcp"')
                    return
                asked = json.loads(body)
                result: Any = {"tools": [{"name": "echo", "description": "Echoes.", "inputSchema": {"type": "object"}}]}
                if asked["method"] == "initialize":
                    result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "guarded", "version": "1"}}
                if "id" in asked:
                    to.answer(200, {"jsonrpc": "2.0", "id": asked["id"], "result": result})
                else:
                    to.answer(202, None)
            case "GET /mcp":
                to.answer(405, {})
            case _:
                to.answer(404, {})

    def __enter__(self) -> Guarded:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
