// What a page says of something that waits for approval, and whether this device may decide about it. Pure.

import type { ApprovalCard, ApprovalInfo, Contributor, Machine } from '../../hold/api'
import { piecesOf } from './exact-text'

export function isPending({ info }: ApprovalCard): boolean {
  return info.status === 'pending'
}

/** Why this device may not decide; '' when it may. The host judges it again. */
export function whyNot(info: ApprovalInfo, machine: Machine | undefined): string {
  if (!machine) return 'this machine is not known here'
  if (info.contributors.some(({ actor }) => actor === machine.actorId) || info.actor === machine.actor)
    return 'you had a part in it, and nobody approves their own'
  if (!machine.rights.includes('approve')) return 'your access does not include approving'
  const named = info.approvers.length === 0 || info.approvers.some((one) => one === machine.actor)
  // A policy may name kinds: a browser is a device, and counts where people do.
  if (!named && !['device', 'human'].some((kind) => info.approvers.includes(kind)))
    return `only ${info.approvers.join(', ')} may decide about it`
  return ''
}

/** Somebody waits for this very device. */
export function waitsForYou(card: ApprovalCard, machine: Machine | undefined): boolean {
  return isPending(card) && whyNot(card.info, machine) === '' && !hasApproved(card.info, machine)
}

export function hasApproved(info: ApprovalInfo, machine: Machine | undefined): boolean {
  return machine !== undefined && info.approved_by.includes(machine.actor)
}

const WANTS: Record<string, string> = {
  line: 'run this',
  input: 'send this to a program',
  signal: 'send a signal',
  end: 'end the session',
  exec: 'start a program',
  'write-open': 'write a file',
  unlink: 'delete a file',
  rename: 'rename a file',
  connect: 'open a connection',
  checkpoint: 'make a checkpoint',
  move: 'move the session',
}

export function wants(info: ApprovalInfo): string {
  return WANTS[info.kind] ?? `do this (${info.kind})`
}

/** In one row, before the text itself. */
export function wantsShort(info: ApprovalInfo): string {
  if (!info.text_known) return 'wants to run a line that its shell does not report'
  return info.kind === 'line' ? 'wants to run' : `wants to ${wants(info)}`
}

const PARTS: Record<string, string> = {
  trigger: 'sets it off',
  typed: 'typed some of it',
  input: 'typed into the program that does it',
  shaped: 'wrote last in a shell that does not say what it holds',
}

const STATE: Record<string, string> = { var: 'variable', func: 'function', alias: 'alias', trap: 'trap' }

/** What this actor did for it. */
export function partText({ part, what }: Contributor): string {
  if (part === 'file') return `wrote ${what.replace(/^file:/, '') || 'a file that it uses'}`
  if (part === 'state') {
    const [kind, ...rest] = what.split(':')
    const name = rest.join(':')
    return name ? `set the ${STATE[kind!] ?? kind} ${name}` : `set ${what || 'state of the shell'}`
  }
  const text = PARTS[part] ?? part
  return what ? `${text}: ${what}` : text
}

/** Who had a part in it besides whoever sets it off, with that part: `jonas set the variable PATH`. */
export function stagedText({ actor, contributors }: ApprovalInfo): string {
  const others = contributors.filter(
    ({ name, part }) => name !== actor || !['trigger', 'typed'].includes(part),
  )
  return others.map((one) => `${one.name} ${partText(one)}`).join(', ')
}

/** Reasons to read closely; with one, approving takes a press that is held. */
export function risksOf(info: ApprovalInfo): string[] {
  const others = new Set(info.contributors.map(({ actor }) => actor)).size - 1
  const risks = []
  if (piecesOf(info.text).some(({ kind }) => kind === 'named')) risks.push('invisible characters')
  if (others > 0) risks.push(others === 1 ? 'another had a part in it' : `${others} others had a part in it`)
  if (!info.text_known) risks.push('the shell does not say what it is')
  if (info.contributors.some(({ part }) => part === 'shaped'))
    risks.push('the shell does not say what it holds')
  if (changesOf(info).length > 0) risks.push('changed since it was asked')
  else if (!info.changes_known) risks.push('what changed is not known')
  return risks
}

const PRINTED = 'output: '

/** What changed since it was asked, but for what was printed: that goes on all the time and changes nothing of it. */
export function changesOf(info: ApprovalInfo): string[] {
  return info.changed.filter((line) => !line.startsWith(PRINTED))
}

/** Whose policy holds it: `host`, `label:NAME` or `session`, with the rule's id behind it. */
export function policyText(policy: string): string {
  const [scope = '', ...rest] = policy.split(/[:\s/]+/)
  const label = scope === 'label' ? rest.shift() : undefined
  const rule = rest.length > 0 ? ` (${rest.join(' ')})` : ''
  if (label) return `the policy of label ${label}${rule}`
  if (scope === 'host' || scope === 'session') return `the policy of this ${scope}${rule}`
  return policy ? `the policy ${policy}` : 'a policy'
}

/** How it stands, once it is settled. */
export function settledText({ info, by, note }: ApprovalCard, me: string): string {
  const who = by === me ? 'you' : by
  const said = note ? `: “${note}”` : ''
  switch (info.status) {
    case 'approved': {
      const names = info.approved_by.map((name) => (name === me ? 'you' : name)).join(' and ')
      return `Approved by ${names || who || 'somebody'}${said}`
    }
    case 'denied':
      return `Denied by ${who || 'somebody'}${said}`
    case 'expired':
      return 'Expired: nobody decided in time, so it was refused'
    case 'withdrawn':
      return `Withdrawn${who ? ` by ${who}` : ''}: it does not happen`
    default:
      return ''
  }
}

/** `1 of 2 approved`; '' when one is enough. */
export function quorumText({ quorum, approved_by }: ApprovalInfo): string {
  return quorum > 1 ? `${approved_by.length} of ${quorum} approved` : ''
}
