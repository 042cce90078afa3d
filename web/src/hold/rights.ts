// The rights of a device in a session, as far as reported. The host decides at each input.

import type { SessionInfo } from './api'
import type { Grant } from '../wire/grants'
import type { Envelope } from '../wire/generated/values'

/** From the host's envelopes, else from the grant. Null: not reported yet; no rights at all is []. */
export function rightsIn(
  info: SessionInfo | null,
  envelopes: readonly Envelope[] | null,
  grant: Pick<Grant, 'rights' | 'expires'>,
  seconds: number,
): string[] | null {
  if (envelopes === null) return null
  const at = (kind: string, names: string[]) =>
    envelopes.filter(({ scope }) => scope.kind === kind && (kind === 'all' || names.includes(scope.name)))
  const near = info ? at('session', [info.id]) : []
  const labelled = info && !near.length ? at('label', info.labels) : []
  const counting = near.length ? near : labelled.length ? labelled : at('all', [])
  if (!counting.length) return grant.expires > seconds ? grant.rights : []
  const sets: string[][] = counting.map((each) =>
    (each.expires_at ?? Infinity) > seconds ? each.rights : [],
  )
  return (sets[0] ?? []).filter((right) => sets.every((set) => set.includes(right)))
}
