import type { Problem } from './schema.js'

/** An error that the daemon or the way to it caused. `code` is a stable word; `suggestion` says how to proceed. */
export class AgentboxError extends Error {
  override readonly name: string = 'AgentboxError'
  /** The stable word of the error, such as `space_not_found`. */
  readonly code: string
  /** The HTTP status, or 0 where no answer came. */
  readonly status: number
  /** How to proceed, where the message alone does not say. */
  readonly suggestion: string | undefined
  /** Names the request in the daemon's log. */
  readonly requestId: string | undefined

  constructor(message: string, about: { code: string; status?: number; suggestion?: string | undefined; requestId?: string | undefined; cause?: unknown }) {
    super(message, about.cause === undefined ? undefined : { cause: about.cause })
    this.code = about.code
    this.status = about.status ?? 0
    this.suggestion = about.suggestion
    this.requestId = about.requestId
  }
}

/** The request is malformed: a wrong type, an unknown field, a value beyond its bounds (400, 413, 415). */
export class ValidationError extends AgentboxError {
  override readonly name = 'ValidationError'
}
/** There is no valid credential (401). */
export class AuthenticationError extends AgentboxError {
  override readonly name = 'AuthenticationError'
}
/** The credential is valid and does not permit this (403). */
export class PermissionDeniedError extends AgentboxError {
  override readonly name: string = 'PermissionDeniedError'
}
/** The policy of the space refuses the operation. */
export class PolicyDeniedError extends PermissionDeniedError {
  override readonly name = 'PolicyDeniedError'
  /** The question that a person has denied, if there was one. */
  readonly approvalId: string | undefined
  constructor(message: string, about: ConstructorParameters<typeof AgentboxError>[1] & { approvalId?: string | undefined }) {
    super(message, about)
    this.approvalId = about.approvalId
  }
}
/** There is no such thing, or it belongs to somebody else (404). */
export class NotFoundError extends AgentboxError {
  override readonly name = 'NotFoundError'
}
/** It clashes with the present state (409). */
export class ConflictError extends AgentboxError {
  override readonly name: string = 'ConflictError'
}
/** A person has to decide first. Answer with `client.approvals.approve(error.approvalId)`, then do the same again. */
export class ApprovalRequiredError extends ConflictError {
  override readonly name = 'ApprovalRequiredError'
  readonly approvalId: string
  /** The run that waits, where a run asked. */
  readonly runId: string | undefined
  constructor(
    message: string,
    about: ConstructorParameters<typeof AgentboxError>[1] & { approvalId: string; runId?: string | undefined },
  ) {
    super(message, about)
    this.approvalId = about.approvalId
    this.runId = about.runId
  }
}
/** A rate or a quota is used up (429). */
export class RateLimitError extends AgentboxError {
  override readonly name = 'RateLimitError'
  /** Seconds after which it may work. */
  readonly retryAfter: number | undefined
  constructor(message: string, about: ConstructorParameters<typeof AgentboxError>[1] & { retryAfter?: number | undefined }) {
    super(message, about)
    this.retryAfter = about.retryAfter
  }
}
/** The daemon cannot be reached, or cannot do it now (503). */
export class UnavailableError extends AgentboxError {
  override readonly name: string = 'UnavailableError'
}
/** No answer came: the connection failed. */
export class NetworkError extends UnavailableError {
  override readonly name = 'NetworkError'
}
/** The time that the caller gave is over. What was asked may still happen; an idempotency key makes a repeat safe. */
export class TimeoutError extends AgentboxError {
  override readonly name = 'TimeoutError'
  /** The run that goes on, where a run was waited for. */
  readonly runId: string | undefined
  constructor(message: string, about: ConstructorParameters<typeof AgentboxError>[1] & { runId?: string | undefined }) {
    super(message, about)
    this.runId = about.runId
  }
}
/** An operation failed for another reason than a refusal. */
export class OperationError extends AgentboxError {
  override readonly name = 'OperationError'
}

/** fromProblem makes the error of a problem document. */
export function fromProblem(p: Problem): AgentboxError {
  const about = { code: p.error, status: p.status, suggestion: p.suggestion, requestId: p.request_id }
  if (p.status === 409 && p.approval_id && p.error !== 'approval_denied') {
    return new ApprovalRequiredError(p.detail, { ...about, approvalId: p.approval_id })
  }
  switch (p.status) {
    case 400:
    case 413:
    case 415:
      return new ValidationError(p.detail, about)
    case 401:
      return new AuthenticationError(p.detail, about)
    case 403:
      return POLICY.test(p.error) || p.approval_id
        ? new PolicyDeniedError(p.detail, { ...about, approvalId: p.approval_id })
        : new PermissionDeniedError(p.detail, about)
    case 404:
      return new NotFoundError(p.detail, about)
    case 409:
      return new ConflictError(p.detail, about)
    case 429:
      return new RateLimitError(p.detail, { ...about, retryAfter: p.retry_after })
    case 503:
      return new UnavailableError(p.detail, about)
  }
  return new AgentboxError(p.detail, about)
}

/** Codes of a refusal by the policy of a space. */
const POLICY = /^(no_policy_allows|policy_|command_|path_|file_|network_|egress_|tool_not_allowed|kill_switch|approval_denied)/
