"""The MCP servers whose tools agents use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from .._wire import clean, part
from ..errors import ValidationError
from .client import AsyncTransport

if TYPE_CHECKING:
    from .. import schema

__all__ = ["AsyncMcpServers"]

Servers = list["schema.ToolServer"]


class AsyncMcpServers:
    """The MCP servers whose tools agents use. A blueprint names them, and agents are offered only tools that a person has trusted."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._t = transport

    async def list(self) -> Servers:
        """Lists the servers with their tools."""
        return cast("Servers", (await self._t.json("GET", "/v1/mcp-servers"))["mcp_servers"])

    async def get(self, name: str) -> schema.ToolServer:
        """Shows a server, its tools, and how they differ from what people trusted."""
        return cast("schema.ToolServer", await self._t.json("GET", f"/v1/mcp-servers/{part(name)}"))

    async def put(
        self,
        name: str,
        *,
        url: str | None = None,
        command: str | None = None,
        key: str | None = None,
        client_id: str | None = None,
        issuer: str | None = None,
        login: bool | None = None,
    ) -> schema.ToolServer:
        """Adds a server, or changes it. Nothing is asked of it yet. After a change no tool of it is trusted.

        It has either a ``url`` or a ``command``, which runs in the agent's space. ``key`` is the name of a key of models. With ``login`` a person
        logs in with a browser. ``client_id`` and ``issuer`` are for OAuth.
        """
        spec = {"url": url, "command": command, "key": key, "client_id": client_id, "issuer": issuer, "login": login}
        return cast("schema.ToolServer", await self._t.json("PUT", f"/v1/mcp-servers/{part(name)}", body=clean(spec)))

    async def remove(self, name: str, reason: str | None = None) -> None:
        await self._t.json("DELETE", f"/v1/mcp-servers/{part(name)}", query={"reason": reason})

    async def look(self, name: str, space_id: str, *, timeout: float = 120) -> schema.ToolServer:
        """Asks a server for its tools. The policy of the space has to permit its host; a server with a command runs in the space."""
        path = f"/v1/mcp-servers/{part(name)}/look"
        return cast("schema.ToolServer", await self._t.json("POST", path, body={"space_id": space_id}, timeout=timeout, once=True))

    async def trust(self, name: str, tools: Sequence[Mapping[str, Any]]) -> schema.ToolServer:
        """Releases tools for agents, each with the hash that was shown: those of ``look``, once somebody has read them."""
        for t in tools:
            if not t.get("tool_sha256"):
                suggestion = "look at the server, and leave out tools that are gone"
                raise ValidationError(f"{t['tool']} has no hash; the server no longer offers it", code="usage", suggestion=suggestion)
        body = {"tools": [{"tool": t["tool"], "tool_sha256": t["tool_sha256"]} for t in tools]}
        return cast("schema.ToolServer", await self._t.json("POST", f"/v1/mcp-servers/{part(name)}/trust", body=body))

    async def begin_login(self, name: str, space_id: str, redirect_uri: str, *, timeout: float = 120) -> schema.Visit:
        """Begins the login of a person at a server that was added with ``login``.

        The person opens ``authorization_url`` in a browser, which the issuer sends back to ``redirect_uri``, http://127.0.0.1:PORT/PATH. The policy
        of the space has to permit the hosts of the server and of the issuer.
        """
        body = {"space_id": space_id, "redirect_uri": redirect_uri}
        return cast("schema.Visit", await self._t.json("POST", f"/v1/mcp-servers/{part(name)}/login", body=body, timeout=timeout, once=True))

    async def finish_login(self, name: str, *, code: str, state: str, iss: str | None = None, timeout: float = 120) -> schema.ToolServer:
        """Finishes the login with what stands in the address to which the browser was sent. The daemon keeps the tokens."""
        path, body = f"/v1/mcp-servers/{part(name)}/login/finish", clean({"code": code, "state": state, "iss": iss})
        return cast("schema.ToolServer", await self._t.json("POST", path, body=body, timeout=timeout, once=True))

    async def log_out(self, name: str) -> None:
        """Destroys the tokens of a login. The issuer is not told."""
        await self._t.json("DELETE", f"/v1/mcp-servers/{part(name)}/login")
