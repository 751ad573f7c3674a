from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentbox import Agentbox
from agentbox._discover import start, stop


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A daemon with a data directory of its own."""
    folder = tmp_path_factory.mktemp("agentbox")
    _, child = start(folder)
    yield folder
    stop(child)


@pytest.fixture
def client(home: Path) -> Iterator[Agentbox]:
    with Agentbox(home=home) as c:
        yield c
