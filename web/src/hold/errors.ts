// The errors that this client's promises are rejected with, and their shape for signals. Codes are those of
// docs/errors.md and, of the page's own: `bad_link` (not an invite link), `wrong_relay` (the link is for a relay that
// this page cannot connect to), `closed` (the view was closed), `internal`.

import type { Trouble } from './api'
import { asHoldError } from '../wire/errors'

export { asHoldError, HoldError } from '../wire/errors'

export function troubleOf(thrown: unknown): Trouble {
  const { code, message, hint, retryable } = asHoldError(thrown)
  return { code, message, hint, retryable }
}
