// Changes in a shell and in the turn, as text.

import type { Change, Handoff } from '../../hold/api'
import { sanitize } from './sanitize'

const WORDS: Record<string, string> = {
  env: 'variable',
  alias: 'alias',
  function: 'function',
  trap: 'trap',
  hash: 'path of',
}

export function changeLine(change: Change): string {
  const [name, before, after] = [change.name, change.before, change.after].map((text) =>
    sanitize(text, 160),
  ) as [string, string, string]
  if (change.kind === 'cwd') return `directory: ${before} → ${after}`
  if (change.kind === 'umask') return `umask: ${before} → ${after}`
  if (change.kind === 'path') return `PATH: ${pathLine(change.before, change.after)}`
  if (change.kind === 'option') return `option ${name}: ${change.what === 'removed' ? 'off' : 'on'}`
  if (change.kind === 'job')
    return change.what === 'removed' ? `job ${name} gone: ${before}` : `job ${name}: ${after}`
  const said = `${WORDS[change.kind] ?? change.kind} ${name} ${change.what}`
  if (change.what === 'changed' && (before || after)) return `${said}: ${before} → ${after}`
  return change.what === 'added' && after ? `${said}: ${after}` : said
}

function pathLine(before: string, after: string): string {
  const [old, fresh] = [before.split(':'), after.split(':')]
  const came = fresh
    .filter((one) => !old.includes(one))
    .map((one) => (one === fresh[0] ? `${one || '.'} (first)` : one || '.'))
  const went = old.filter((one) => !fresh.includes(one)).map((one) => one || '.')
  const said = [
    came.length > 0 ? `added ${came.join(', ')}` : '',
    went.length > 0 ? `removed ${went.join(', ')}` : '',
  ]
  return sanitize(said.filter(Boolean).join('; ') || `now in the order ${after}`, 300)
}

/** Whether others did something meanwhile: for a page that only lost its connection. */
export function othersActed(handoff: Handoff, me: string): boolean {
  return (
    handoff.commands.some(({ actor }) => actor !== me) ||
    handoff.moves.some(({ holder }) => holder !== '' && holder !== me)
  )
}

/** Whether there is anything in it that a returning operator must know. */
export function hasNews(handoff: Handoff): boolean {
  return (
    handoff.since_at !== null &&
    (handoff.commands.length > 0 ||
      handoff.moves.length > 0 ||
      handoff.changes.length > 0 ||
      handoff.refused > 0 ||
      handoff.blind_bytes > 0 ||
      handoff.unsubmitted !== '' ||
      !handoff.unsubmitted_known)
  )
}
