"""Names that a path would read as a way, and keys that nothing shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agentbox import Agentbox, ValidationError
from agentbox._discover import discover


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_leads_to_nothing_else(client: Agentbox, name: str) -> None:
    with client.spaces.create() as space:
        space.files.write("kept.txt", "kept")
        calls: list[Callable[[], object]] = [
            lambda: space.delete_context(name),
            lambda: space.cancel(name),
            lambda: client.spaces.get(name),
            lambda: client.blueprints.remove(name),
            lambda: client.models.remove_key(name),
            lambda: client.mcp_servers.log_out(name),
            lambda: client.approvals.approve(name),
        ]
        for call in calls:
            with pytest.raises(ValidationError) as refused:
                call()
            assert refused.value.code == "name_invalid"
        assert space.files.read_text("kept.txt") == "kept"
        assert client.spaces.get(space.id).info["status"] == "ready"


def test_the_key_is_in_no_representation(client: Agentbox, home: Path) -> None:
    found = discover(home=home)
    assert found.key == client.key != ""
    assert found.key not in repr(found) + repr(client) + repr(client.transport)
