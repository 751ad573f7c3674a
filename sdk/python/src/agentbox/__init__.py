"""Run the code of AI agents in isolated spaces.

>>> from agentbox import Sandbox
>>> with Sandbox() as box:
...     print(box.run("print(6 * 7)").stdout)
42
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._async.agents import AsyncAgentRun as AsyncAgentRun
    from ._async.client import AsyncAgentbox as AsyncAgentbox
    from ._async.client import AsyncArtifact as AsyncArtifact
    from ._async.client import AsyncRun as AsyncRun
    from ._async.client import AsyncSpace as AsyncSpace
    from ._async.process import AsyncProcess as AsyncProcess
    from ._async.sandbox import AsyncSandbox as AsyncSandbox
    from ._async.sandbox import AsyncSandboxResult as AsyncSandboxResult
    from ._sync.agents import AgentRun as AgentRun
    from ._sync.client import Agentbox as Agentbox
    from ._sync.client import Artifact as Artifact
    from ._sync.client import Run as Run
    from ._sync.client import Space as Space
    from ._sync.process import Process as Process
    from ._sync.sandbox import Sandbox as Sandbox
    from ._sync.sandbox import SandboxResult as SandboxResult
    from .config import SandboxConfig as SandboxConfig
    from .errors import AgentboxError as AgentboxError
    from .errors import ApprovalRequiredError as ApprovalRequiredError
    from .errors import AuthenticationError as AuthenticationError
    from .errors import ConflictError as ConflictError
    from .errors import NetworkError as NetworkError
    from .errors import NotFoundError as NotFoundError
    from .errors import OperationError as OperationError
    from .errors import PermissionDeniedError as PermissionDeniedError
    from .errors import PolicyDeniedError as PolicyDeniedError
    from .errors import RateLimitError as RateLimitError
    from .errors import TimeoutError as TimeoutError
    from .errors import UnavailableError as UnavailableError
    from .errors import ValidationError as ValidationError
    from .results import CodeResult as CodeResult
    from .results import Display as Display
    from .results import ExecResult as ExecResult
    from .results import Output as Output

__version__ = "0.1.0"

# Names are read when they are first used, so that importing the package costs next to nothing.
_WHERE = {
    "_async.agents": ("AsyncAgentRun",),
    "_async.client": ("AsyncAgentbox", "AsyncArtifact", "AsyncRun", "AsyncSpace"),
    "_async.process": ("AsyncProcess",),
    "_async.sandbox": ("AsyncSandbox", "AsyncSandboxResult"),
    "_sync.agents": ("AgentRun",),
    "_sync.client": ("Agentbox", "Artifact", "Run", "Space"),
    "_sync.process": ("Process",),
    "_sync.sandbox": ("Sandbox", "SandboxResult"),
    "config": ("SandboxConfig",),
    "results": ("CodeResult", "Display", "ExecResult", "Output"),
    "errors": (
        "AgentboxError",
        "ApprovalRequiredError",
        "AuthenticationError",
        "ConflictError",
        "NetworkError",
        "NotFoundError",
        "OperationError",
        "PermissionDeniedError",
        "PolicyDeniedError",
        "RateLimitError",
        "TimeoutError",
        "UnavailableError",
        "ValidationError",
    ),
}
_MODULES = {name: module for module, names in _WHERE.items() for name in names}

__all__ = [*_MODULES, "__version__"]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
