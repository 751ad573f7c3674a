"""Finds a daemon, or starts one."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from .errors import AgentboxError


@dataclass(frozen=True)
class Found:
    """Where a daemon serves, the key with which it is asked, and where both were found."""

    url: str
    key: str = field(repr=False)
    origin: str


def discover(url: str | None = None, key: str | None = None, home: str | os.PathLike[str] | None = None) -> Found:
    """Finds a daemon as the command line does: AGENTBOX_URL and AGENTBOX_KEY, else the daemon of AGENTBOX_HOME or ~/.agentbox.

    Arguments win over variables. A variable that is set and empty is an error. The key of the local owner goes to the local daemon only.
    """
    for name in ("AGENTBOX_URL", "AGENTBOX_KEY", "AGENTBOX_HOME"):
        if os.environ.get(name) == "":
            raise AgentboxError(f"{name} is set and empty", code="usage", suggestion=f"unset {name}, or give it a value")
    if home is None:
        url, key = url or os.environ.get("AGENTBOX_URL"), key or os.environ.get("AGENTBOX_KEY")
    if url and key:
        return Found(url, key, url)
    folder = Path(home or os.environ.get("AGENTBOX_HOME") or Path.home() / ".agentbox")
    try:
        state = json.loads((folder / "daemon.json").read_text())
        own = f"http://{state['addr']}"
        if url and urlsplit(url).netloc != state["addr"]:
            raise _no_key(url, f"; the local owner's key goes to {own} only")
        if not _lives(int(state["pid"])):
            raise ProcessLookupError(f"process {state['pid']} has ended")
        found = Found(url or own, key or (folder / "owner.key").read_text().strip(), str(folder))
    except (OSError, ValueError, KeyError) as err:
        if url:
            raise _no_key(url) from err
        raise AgentboxError(f"no daemon runs on {folder}: {err}", code="daemon_not_running", suggestion="start one with: agentbox up") from err
    return found


def _no_key(url: str, why: str = "") -> AgentboxError:
    return AgentboxError(f"no key for {url}{why}", code="key_missing", suggestion="give key, or set AGENTBOX_KEY")


def program() -> str:
    """Returns the path of the program: AGENTBOX_BIN, the one that came with this package, or the one of the PATH."""
    own = Path(__file__).with_name("bin") / ("agentbox.exe" if os.name == "nt" else "agentbox")
    for candidate in (os.environ.get("AGENTBOX_BIN"), str(own) if own.exists() else None, shutil.which("agentbox")):
        if candidate:
            return candidate
    raise AgentboxError(
        "there is no program agentbox", code="program_missing", suggestion="install a wheel of your platform, or set AGENTBOX_BIN"
    )


def start(home: str | os.PathLike[str] | None = None, *, args: list[str] | None = None, wait_seconds: float = 60) -> tuple[Found, subprocess.Popen[bytes]]:
    """Starts a daemon on a free port of loopback, waits until it is ready, and ends it with this process."""
    folder = Path(home or os.environ.get("AGENTBOX_HOME") or Path.home() / ".agentbox")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = (folder / "sdk-daemon.log").open("wb")
    with log:
        child = subprocess.Popen(
            [program(), "up", "--data", str(folder), "--listen", "127.0.0.1:0", *(args or [])],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    atexit.register(stop, child)
    until = time.monotonic() + wait_seconds
    while True:
        if child.poll() is not None or time.monotonic() > until:
            stop(child)
            said = (folder / "sdk-daemon.log").read_text(errors="replace").strip()[-500:]
            raise AgentboxError(f"agentbox did not start: {said}", code="daemon_not_started")
        try:
            state = json.loads((folder / "daemon.json").read_text())
            if state["pid"] == child.pid and not state.get("phase"):
                return discover(home=folder), child
        except (OSError, ValueError, KeyError, AgentboxError):
            pass  # it is not there yet
        time.sleep(0.02)


def stop(child: subprocess.Popen[bytes]) -> None:
    """Ends a daemon and waits for its end."""
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(30)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _lives(pid: int) -> bool:
    if os.name == "nt":
        return True  # a dead one does not answer
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        return False
    return True
