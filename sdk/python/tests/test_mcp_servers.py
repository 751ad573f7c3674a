"""The MCP servers of agents: added, looked at, trusted and removed, against a real daemon and a server in a space."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
from guarded import Guarded
from vendor import Vendor

from agentbox import Agentbox, AgentboxError, AsyncAgentbox, ConflictError, NotFoundError, ValidationError

INNER = """import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    if m["method"] == "initialize":
        r = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "inner", "version": "1"}}
    elif m["method"] == "tools/list":
        r = {"tools": [{"name": "count", "description": "Counts.", "inputSchema": {"type": "object"}}]}
    else:
        r = {"content": [{"type": "text", "text": "counted"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"""
"""An MCP server that runs in a space. It answers by the protocol's messages, one in each line."""

URL = "https://mcp.example.com/mcp"
BACK = "http://127.0.0.1:41817/callback"


def test_servers(client: Agentbox) -> None:
    added = client.mcp_servers.put("kept", url=URL, key="example")
    assert (added["name"], added.get("url"), added.get("key"), added["tools"]) == ("kept", "https://mcp.example.com:443/mcp", "example", [])
    changed = client.mcp_servers.put("kept", command="node server.js")
    assert (changed.get("command"), changed.get("url"), changed.get("key")) == ("node server.js", None, None)
    assert changed["mcp_server_sha256"] != added["mcp_server_sha256"]
    assert client.mcp_servers.get("kept") == changed and changed in client.mcp_servers.list()
    for spec in ({"url": URL, "command": "true"}, {}):
        with pytest.raises(ValidationError):
            client.mcp_servers.put("wrong", **spec)
    client.mcp_servers.remove("kept", "not used")
    assert "kept" not in [s["name"] for s in client.mcp_servers.list()]
    with pytest.raises(NotFoundError):
        client.mcp_servers.get("kept")
    with pytest.raises(NotFoundError):
        client.mcp_servers.remove("kept")


def test_an_agent_uses_a_tool_that_was_trusted(client: Agentbox) -> None:
    with (
        Vendor([[{"tool": "inner__count", "arguments": {}}]], "it is counted") as served,
        client.spaces.create(runtime="heavy", policy="permissive") as space,
    ):
        client.mcp_servers.put("inner", command="python3 inner.py")
        space.files.write("inner.py", INNER)
        seen = client.mcp_servers.look("inner", space.id)
        assert [(t["tool"], t.get("name"), t["state"], t.get("description")) for t in seen["tools"]] == [
            ("count", "inner__count", "quarantined", "Counts.")
        ]
        with pytest.raises(ConflictError) as other:
            client.mcp_servers.trust("inner", [{"tool": "count", "tool_sha256": "sha256:" + 64 * "0"}])
        assert other.value.code == "mcp_tool_changed"
        with pytest.raises(ValidationError) as gone:
            client.mcp_servers.trust("inner", [{"tool": "count"}])
        assert gone.value.code == "usage"
        trusted = client.mcp_servers.trust("inner", seen["tools"])
        assert [(t["state"], t.get("tool_sha256")) for t in trusted["tools"]] == [("trusted", seen["tools"][0].get("tool_sha256"))]
        assert trusted["mcp_server_sha256"] != seen["mcp_server_sha256"]

        client.models.put("counts", dialect="generic", base_url=served.url, model="counts-1", allow_private=True)
        text = "api_version: 1\nname: counts\nadapter: {kind: internal}\nmodels: {default: counts}\ntools: {mcp: [inner]}\n"
        client.blueprints.register("counts", client.blueprints.lock(text))
        questions: list[Any] = []

        def approve(question: Any) -> Any:
            questions.append(question)
            return "approve"

        run = client.agents.run("counts", "Count.", space_id=space.id, on_approval=approve)
        assert run.report == "it is counted", run.info
        assert "counted" in json.dumps(served.asked[-1]["messages"])
        assert any("inner__count" in q["question"]["what"] for q in questions), questions
        client.mcp_servers.remove("inner")


def test_a_login_that_cannot_begin(client: Agentbox) -> None:
    with client.spaces.create() as space:
        client.mcp_servers.put("plain", url=URL)
        client.mcp_servers.put("notes", url=URL, login=True)
        found: list[str] = []
        for call in (
            lambda: client.mcp_servers.begin_login("plain", space.id, BACK),
            lambda: client.mcp_servers.begin_login("notes", space.id, "https://example.com/callback"),
            lambda: client.mcp_servers.begin_login("notes", space.id, BACK),
            lambda: client.mcp_servers.finish_login("notes", code="c", state="WQ4HZ5OJ3TGKX2A7SB6YCLV4NE"),
            lambda: client.mcp_servers.log_out("notes"),
        ):
            with pytest.raises(AgentboxError) as refused:
                call()
            found.append(refused.value.code)
        assert found == ["mcp_login_unwanted", "invalid_field", "no_policy_allows", "mcp_login_not_found", "mcp_login_needed"]
        assert "logged_in" not in client.mcp_servers.get("notes")


def test_a_person_logs_in_and_out(client: Agentbox) -> None:
    with Guarded() as served:
        host = urlsplit(served.url).netloc
        client.mcp_servers.put("guarded", url=served.url, login=True)
        with client.spaces.create(best_effort=True, policy_overrides={"allow": {"domains": [host]}}) as space:
            with pytest.raises(AgentboxError) as before:
                client.mcp_servers.look("guarded", space.id)
            assert before.value.code == "mcp_login_needed"
            visit = client.mcp_servers.begin_login("guarded", space.id, BACK)
            sent = httpx.get(visit["authorization_url"])  # as the person's browser does
            assert sent.headers["location"].startswith(BACK + "?")
            back = dict(parse_qsl(urlsplit(sent.headers["location"]).query))
            server = client.mcp_servers.finish_login("guarded", **back)
            with pytest.raises(AgentboxError) as again:
                client.mcp_servers.finish_login("guarded", **back)
            assert again.value.code == "mcp_login_not_found"
            assert server["logged_in"]["client_id"] == "client-1" and server["logged_in"]["scopes"] == ["tools"]
            seen = client.mcp_servers.look("guarded", space.id)
            assert [t.get("name") for t in seen["tools"]] == ["guarded__echo"]
            shown = json.dumps([server, seen, client.mcp_servers.list()])
            assert len(served.secrets) == 3 and not [s for s in served.secrets if s in shown]
            client.mcp_servers.log_out("guarded")
            assert "logged_in" not in client.mcp_servers.get("guarded")
            with pytest.raises(AgentboxError) as after:
                client.mcp_servers.look("guarded", space.id)
            assert after.value.code == "mcp_login_needed"


async def test_an_asynchronous_client_too(home: Path) -> None:
    async with AsyncAgentbox(home=home) as client:
        added = await client.mcp_servers.put("later", url=URL)
        assert added in await client.mcp_servers.list()
        await client.mcp_servers.remove("later")
        with pytest.raises(NotFoundError):
            await client.mcp_servers.get("later")
