// Errors: a stable code of docs/errors.md, what happened, what to do next, whether to try again.

import { type ErrorCode, RETRYABLE } from './generated/constants'

/** Besides those of the protocol: not an invite link, a link for a relay this page cannot connect to, a closed view, an answer
    to what is asked no longer. */
type PageCode = 'bad_link' | 'wrong_relay' | 'closed' | 'question_over'
export type Code = ErrorCode | PageCode

export class HoldError extends Error {
  constructor(
    readonly code: Code,
    message: string,
    readonly hint = '',
    readonly retryable = RETRYABLE.has(code),
  ) {
    super(message)
    this.name = 'HoldError'
  }

  /** As a host or relay reported it. A later version may have codes that this one does not know. */
  static reported(failed: { code: string; message: string; hint?: string; retryable?: boolean }): HoldError {
    return new HoldError(failed.code as Code, failed.message, failed.hint, failed.retryable)
  }
}

/** Anything thrown, as a HoldError. What is not one already is a bug of this program. */
export function asHoldError(thrown: unknown): HoldError {
  if (thrown instanceof HoldError) return thrown
  const text = thrown instanceof Error ? thrown.message : String(thrown)
  return new HoldError('internal', `something went wrong in this page: ${text}`, 'reload the page')
}

export const violation = (message: string) => new HoldError('protocol_violation', message)
export const broken = (message: string) => new HoldError('channel_broken', message)
export const refusedFrame = (message: string) => new HoldError('output_refused', message)
export const handshakeFailed = (message: string, hint = '') =>
  new HoldError('handshake_failed', message, hint)
