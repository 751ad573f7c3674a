"""Makes docs/SDK-PYTHON.md from signatures and docstrings. It reads the sources and imports nothing of the package."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
PACKAGE = HERE / "src" / "agentbox"
PAGE = HERE.parent.parent / "docs" / "SDK-PYTHON.md"

# The modules in the order of the page, and their classes and functions that stand there; all that are public where none are named.
MODULES: list[tuple[str, str]] = [
    ("agentbox", "_sync/sandbox.py"),
    ("", "config.py"),
    ("", "_sync/client.py"),
    ("", "_sync/process.py"),
    ("", "_sync/agents.py"),
    ("", "_sync/mcp_servers.py"),
    ("", "results.py"),
    ("", "errors.py"),
    ("agentbox.tools", "tools.py"),
]
INNER = {"Transport", "shell", "pages", "pictured", "problem", "from_problem"}


def told(node: ast.AsyncFunctionDef | ast.FunctionDef | ast.ClassDef) -> str:
    """Returns the docstring of a node."""
    return ast.get_docstring(node) or ""


def comment(body: list[ast.stmt], at: int) -> str:
    """Returns the string that stands behind a field."""
    after = body[at + 1] if at + 1 < len(body) else None
    if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
        return inspect.cleandoc(after.value.value)
    return ""


def entry(code: str, text: str) -> str:
    said = " ".join(text.split())
    return f"- `{' '.join(code.split())}`" + (f"<br>{said}" if said else "")


def decorated(node: ast.FunctionDef, name: str) -> bool:
    return any(ast.unparse(d) == name for d in node.decorator_list)


def arguments(node: ast.FunctionDef) -> str:
    """Returns what the caller gives: the arguments without self and cls."""
    text = ast.unparse(node.args)
    for first in ("self, ", "cls, ", "self", "cls"):
        if text.startswith(first):
            return text.removeprefix(first)
    return text


def members(node: ast.ClassDef) -> list[str]:
    found: list[str] = []
    for at, item in enumerate(node.body):
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and not item.target.id.startswith("_"):
            value = f" = {ast.unparse(item.value)}" if item.value and "field(" not in ast.unparse(item.value) else ""
            found.append(entry(f"{item.target.id}: {ast.unparse(item.annotation)}{value}", comment(node.body, at)))
        elif isinstance(item, ast.FunctionDef) and item.name == "__init__":
            found += fields(item)
        elif isinstance(item, ast.FunctionDef) and not item.name.startswith("_"):
            result = ast.unparse(item.returns) if item.returns else "None"
            if decorated(item, "property"):
                found.append(entry(f"{item.name}: {result}", told(item)))
            else:
                found.append(entry(f"{item.name}({arguments(item)}) -> {result}", told(item)))
    return found


def fields(init: ast.FunctionDef) -> list[str]:
    """Returns the public attributes that a constructor sets."""
    found: list[str] = []
    for at, item in enumerate(init.body):
        targets: list[ast.expr] = [item.target] if isinstance(item, ast.AnnAssign) else item.targets if isinstance(item, ast.Assign) else []
        for target in targets:
            for one in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(one, ast.Attribute) and not one.attr.startswith("_") and one.attr != "transport":
                    found.append(entry(one.attr, comment(init.body, at)))
    return found


def page() -> str:
    out = [
        "# The Python SDK, name by name",
        "",
        "<!-- Made by make generate from sdk/python/src; do not edit. -->",
        "",
        "How to use it stands in [SDK.md](SDK.md). Each class that sends requests has a twin whose name begins with `Async`, such as `AsyncAgentbox` and",
        "`AsyncSandbox`. It has the same methods as coroutines, and yields asynchronously.",
    ]
    for title, file in MODULES:
        if title:
            out += ["", f"## {title}"]
        for node in ast.parse((PACKAGE / file).read_text()).body:
            if not isinstance(node, (ast.ClassDef, ast.FunctionDef)) or node.name.startswith("_") or node.name in INNER:
                continue
            if isinstance(node, ast.FunctionDef):
                returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
                out += ["", f"### {node.name}", "", "```python", f"def {node.name}({ast.unparse(node.args)}){returns}", "```", "", told(node)]
                continue
            bases = [ast.unparse(b) for b in node.bases]
            init = next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
            out += ["", f"### {node.name}", "", told(node), ""]
            if init and "transport" not in arguments(init).split(":")[0]:
                out += ["```python", f"{node.name}({arguments(init)})", "```", ""]
            elif bases:
                out += ["```python", f"class {node.name}({', '.join(bases)})", "```", ""]
            out += members(node)
    text = "\n".join(out) + "\n"
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text


if __name__ == "__main__":
    made = page()
    if not PAGE.exists() or PAGE.read_text() != made:
        PAGE.write_text(made)
