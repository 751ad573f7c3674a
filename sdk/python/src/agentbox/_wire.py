"""What both clients share of the wire: requests, repeats, and the lines of an event stream."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from .errors import AgentboxError, RateLimitError, UnavailableError, ValidationError

Json = dict[str, Any]
JsonList = list[Json]

MAX_MESSAGE = 64 << 20
"""The most that one message of a stream may have, in characters."""


@dataclass
class Message:
    """One server-sent event."""

    id: str = ""
    event: str = "message"
    data: str = ""


@dataclass
class Parser:
    """Reads the lines of an event stream. An event that the end cuts off is dropped."""

    last_id: str = ""
    _event: str = "message"
    _data: list[str] = field(default_factory=list[str])
    _size: int = 0

    def feed(self, line: str) -> Iterator[Message]:
        if line == "":
            if self._data:
                yield Message(self.last_id, self._event, "\n".join(self._data))
            self._event, self._data, self._size = "message", [], 0
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "id" and "\0" not in value:
            self.last_id = value
        elif name == "event":
            self._event = value or "message"
        elif name == "data":
            self._size += len(value)
            if self._size > MAX_MESSAGE:
                raise AgentboxError(f"a message of the stream has more than {MAX_MESSAGE} characters", code="stream_broken")
            self._data.append(value)


def passing(err: Exception) -> bool:
    """Says whether the same request may succeed a moment later."""
    if isinstance(err, RateLimitError):
        return (err.retry_after or 0) <= 10
    return isinstance(err, UnavailableError) or (isinstance(err, AgentboxError) and (err.status in (502, 504) or err.code == "idempotency_in_progress"))


def backoff(failed: int, err: Exception | None) -> float:
    """Doubles from 0.1 s to 5 s, with a fifth of chance, and follows Retry-After."""
    if isinstance(err, RateLimitError) and err.retry_after:
        return float(err.retry_after)
    return min(0.1 * 2.0**failed, 5.0) * random.uniform(0.9, 1.1)


def clean(fields: Mapping[str, Any]) -> Json:
    """Leaves out what is None."""
    return {name: value for name, value in fields.items() if value is not None}


def part(text: str) -> str:
    """Escapes one part of a path. Two dots would go up, and name another thing: a space instead of one of its contexts."""
    if text in ("", ".", ".."):
        raise ValidationError(f"{text!r} names nothing", code="name_invalid", status=400)
    return quote(text, safe="")


def file_path(path: str) -> str:
    """Escapes the path of a file, which lies below the top of a space."""
    parts = path.split("/")
    if any(p in ("", ".", "..") for p in parts):
        raise ValidationError(f"{path!r} is no path below the files of a space", code="path_invalid", status=400)
    return "/".join(part(p) for p in parts)


def printed(data: str | None, encoding: str | None) -> str:
    """Returns what a command printed, as text."""
    return "" if data is None else raw_of(data, encoding).decode(errors="replace")


def raw_of(data: str, encoding: str | None) -> bytes:
    """Returns what a command printed, as bytes."""
    return base64.b64decode(data) if encoding == "base64" else data.encode()


def text_of(data: bytes) -> str:
    """Returns bytes as base64."""
    return base64.b64encode(data).decode()
