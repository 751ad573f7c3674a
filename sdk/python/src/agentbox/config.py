"""How a sandbox is made."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Literal

from .errors import ValidationError

__all__ = ["SandboxConfig"]


@dataclass(frozen=True)
class SandboxConfig:
    """How a sandbox is made. Every sandbox has a limit of time and of memory, also where none is given."""

    runtime: Literal["auto", "nano", "heavy"] = "auto"
    """``nano`` starts in a millisecond and runs everywhere; ``heavy`` has native packages; ``auto`` begins in nano and moves when code needs it."""
    packages: list[str] = field(default_factory=list[str])
    """Modules that code needs, under the names that it imports; the first use fails where the runtime does not have one."""
    timeout_ms: int = 10_000
    """Milliseconds that one run may take, 1 to 3,600,000."""
    memory_limit_mb: int = 512
    """Memory of the sandbox in MiB, 16 at least."""
    allowed_modules: list[str] | None = None
    """Modules that code may import, with what lies below them; None allows all. It guards against mistakes; the sandbox is what isolates."""
    seed: str | None = None
    """Any text, which decides chance and the clock in nano: the same code then does the same each time."""
    env: dict[str, str] = field(default_factory=dict[str, str])
    """Environment of every run."""
    policy: Literal["restrictive", "standard", "permissive"] = "standard"

    def __post_init__(self) -> None:
        if self.runtime not in ("auto", "nano", "heavy"):
            raise ValidationError(f"runtime is auto, nano or heavy, and not {self.runtime!r}", code="config_invalid")
        if not 1 <= self.timeout_ms <= 3_600_000:
            raise ValidationError(f"timeout_ms is 1 to 3600000, and not {self.timeout_ms}", code="config_invalid")
        if self.memory_limit_mb < 16:
            raise ValidationError(f"memory_limit_mb is at least 16, and not {self.memory_limit_mb}", code="config_invalid")

    def guarded(self, code: str) -> str:
        """Returns the code with a guard of its imports in front, where modules are restricted."""
        if self.allowed_modules is None:
            return code
        allowed = tuple(self.allowed_modules)
        try:
            tree = ast.parse(code)
        except SyntaxError:
            return code  # the interpreter says what is wrong with it
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                if not any(name == a or name.startswith(a + ".") for a in allowed):
                    return f"raise ImportError({f'module {name} is not among allowed_modules'!r})"
        return _GUARD.format(allowed=allowed) + code


# One line, so that the line numbers of the code's own errors stay nearly what they are.
_GUARD = (
    "import builtins as _b; _i=_b.__import__; "
    "_b.__import__=lambda n,g=None,l=None,f=(),v=0,_a={allowed!r},_i=_i: _i(n,g,l,f,v) "
    "if v or (g and g.get('__name__')!='__main__') or any(n==a or n.startswith(a+'.') for a in _a) "
    "else (_ for _ in ()).throw(ImportError('module '+n+' is not among allowed_modules')); del _b,_i\n"
)
