// A set of rights, and where it applies, as text.

import { ROLES } from '../../hold/api'

const ADMIN_MARKS = ['grant', 'seize', 'halt', 'end']

/** The role these rights are, or null when they are a mix of their own. */
export function roleOf(rights: readonly string[]): string | null {
  const have = new Set(rights)
  if (have.has('admin') || ADMIN_MARKS.every((right) => have.has(right))) return 'admin'
  for (const [role, needed] of Object.entries(ROLES)) {
    if (have.size === 1 && have.has(role)) return role
    if (have.size === needed.length && (needed as string[]).every((right) => have.has(right))) return role
  }
  return null
}

const SAYS: [string, string][] = [
  ['observe', 'watch'],
  ['input', 'type'],
  ['seize', 'seize the turn'],
  ['halt', 'halt and resume'],
  ['end', 'end sessions'],
  ['grant', 'invite others'],
  ['approve', 'approve'],
]

/** Whether to offer it. While it is not known (null), yes: the host decides. */
export function may(rights: readonly string[] | null, right: string): boolean {
  return rights === null || rights.includes(right)
}

/** One line: `watch, type, take the turn`. */
export function rightsLine(rights: readonly string[]): string {
  const role = roleOf(rights)
  if (role === 'admin') return 'full access, including inviting others'
  if (role === 'read') return 'watch only'
  const have = new Set<string>(role === 'execute' || role === 'approve' ? ROLES[role] : rights)
  const said = SAYS.filter(([right]) => have.has(right)).map(([, word]) => word)
  return said.join(', ') || 'nothing'
}

/** The same as two lists. */
export function can(rights: readonly string[]): { may: string[]; mayNot: string[] } {
  const role = roleOf(rights)
  const have = new Set<string>(role && role in ROLES ? ROLES[role as keyof typeof ROLES] : rights)
  const words = (held: boolean): string[] =>
    SAYS.filter(([right]) => have.has(right) === held).map(([, word]) => word)
  return { may: words(true), mayNot: words(false) }
}

/** Where it counts: `every session of this machine`, `sessions labelled team-a`, `one session`. */
export function reachLine(reach: string): string {
  if (!reach || reach === 'all') return 'every session of this machine'
  const steps = reach.split('/').filter((step) => !step.startsWith('host:'))
  if (steps.length === 0) return 'every session of this machine'
  if (steps.some((step) => step.startsWith('session:'))) return 'one session'
  return `sessions labelled ${steps.map((step) => step.replace(/^label:/, '')).join(' and ')}`
}
