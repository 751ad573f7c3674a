"""The errors of the client. Each has a stable ``code`` and, where there is one, a ``suggestion`` how to proceed."""

from __future__ import annotations

import re
from typing import Any

__all__ = [
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
]


class AgentboxError(Exception):
    """An error that the daemon or the way to it caused."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: int = 0,
        suggestion: str | None = None,
        request_id: str | None = None,
        approval_id: str | None = None,
        run_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        """The stable word of the error, such as ``space_not_found``."""
        self.status = status
        """The HTTP status, or 0 where no answer came."""
        self.suggestion = suggestion
        """How to proceed, where the message alone does not say."""
        self.request_id = request_id
        """Names the request in the daemon's log."""
        self.approval_id = approval_id
        """The question that a person has to answer, or has denied."""
        self.run_id = run_id
        """The run that waits, where a run asked."""
        self.retry_after = retry_after
        """Seconds after which it may work."""

    def __str__(self) -> str:
        return f"{self.message} ({self.code})" + (f"; {self.suggestion}" if self.suggestion else "")


class ValidationError(AgentboxError):
    """The request is malformed (400, 413, 415)."""


class AuthenticationError(AgentboxError):
    """There is no valid credential (401)."""


class PermissionDeniedError(AgentboxError):
    """The credential is valid and does not permit this (403)."""


class PolicyDeniedError(PermissionDeniedError):
    """The policy of the space refuses the operation, or a person denied it."""


class NotFoundError(AgentboxError):
    """There is no such thing, or it belongs to somebody else (404)."""


class ConflictError(AgentboxError):
    """It clashes with the present state (409)."""


class ApprovalRequiredError(ConflictError):
    """A person has to decide first. Answer with ``client.approvals.approve(error.approval_id)``, then do the same again."""


class RateLimitError(AgentboxError):
    """A rate or a quota is used up (429)."""


class UnavailableError(AgentboxError):
    """The daemon cannot be reached, or cannot do it now (503)."""


class NetworkError(UnavailableError):
    """No answer came: the connection failed."""


class TimeoutError(AgentboxError):
    """The time that the caller gave is over. What was asked may still happen."""


class OperationError(AgentboxError):
    """An operation failed for another reason than a refusal."""


_POLICY = re.compile(
    r"^(no_policy_allows|policy_|command_|path_|file_|network_|egress_|tool_not_allowed|kill_switch|approval_denied)"
)

_BY_STATUS: dict[int, type[AgentboxError]] = {
    400: ValidationError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    413: ValidationError,
    415: ValidationError,
    429: RateLimitError,
    503: UnavailableError,
}


def from_problem(status: int, problem: dict[str, Any], retry_after: float | None = None) -> AgentboxError:
    """Makes the error of a problem document (RFC 9457)."""
    code = str(problem.get("error") or f"http_{status}")
    approval: str | None = problem.get("approval_id")
    kind = _BY_STATUS.get(status, AgentboxError)
    if status == 409 and approval and code != "approval_denied":
        kind = ApprovalRequiredError
    elif status == 403 and (approval or _POLICY.match(code)):
        kind = PolicyDeniedError
    return kind(
        str(problem.get("detail") or f"the answer was {status}"),
        code=code,
        status=status,
        suggestion=problem.get("suggestion"),
        request_id=problem.get("request_id"),
        approval_id=approval,
        retry_after=problem.get("retry_after") or retry_after,
    )
