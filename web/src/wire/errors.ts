// Errors as everybody meets them: a stable code of docs/errors.md, what happened, what to do, whether to try again.

/** Codes after which the same may succeed later, by docs/errors.md. */
const RETRYABLE = new Set([
  'relay_unreachable',
  'host_down',
  'host_lost',
  'coordination_down',
  'session_busy',
  'session_halted',
  'halt_failed',
  'port_not_listening',
  'connection_reset',
  'turn_held',
  'rate_limited',
  'fenced',
  'channel_broken',
  'output_gap',
  'timed_out',
])

export class HoldError extends Error {
  readonly code: string
  readonly hint: string
  readonly retryable: boolean

  constructor(code: string, message: string, hint = '', retryable = RETRYABLE.has(code)) {
    super(message)
    this.name = 'HoldError'
    this.code = code
    this.hint = hint
    this.retryable = retryable
  }
}

/** Whatever was thrown, as one of ours. What is not ours is a fault of this program. */
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
