// A continuity certificate in words: what its host certifies of a session over epochs and hosts. It is proven by
// `hold certificate check`, and not here. Pure.

import { ago, clock, took } from './durations'
import { bytesText } from './sizes'

export interface CertifiedReturn {
  readonly epoch_before: number
  readonly epoch: number
  readonly kind: string
  readonly downtime_s: number
  readonly bytes: number
  readonly inputs_lost: number
  readonly resets: number
}

export interface Certificate {
  readonly session: string
  readonly name: string
  readonly made_at: number
  readonly last: number
  readonly host_key: string
  readonly epochs: readonly { readonly epoch: number; readonly host: string; readonly began_at: number }[]
  readonly returns: readonly CertifiedReturn[]
  readonly predecessor: string
  readonly revived: boolean
  readonly closed_by: string
}

/** Null when it is none that this page can read. */
export function certificateOf(text: string): Certificate | null {
  try {
    const read = JSON.parse(text) as Partial<Certificate> & { holdfast?: unknown }
    const isOne = typeof read.holdfast === 'string' && read.holdfast.startsWith('certificate v')
    return isOne && Array.isArray(read.epochs) && Array.isArray(read.returns) ? (read as Certificate) : null
  } catch {
    return null
  }
}

const KINDS: Readonly<Record<string, string>> = {
  memory: 'its processes went on as they were',
  application: 'its program went on with the state it had saved',
  cold: 'its command was started again',
}

/** What came of it, one line for each time that it came back; the first one is of all of them. */
export function certifiedFacts(of: Certificate, now: number): [word: string, text: string][] {
  const hosts = new Set(of.epochs.map(({ host }) => host)).size
  const lives = of.epochs.length
  const facts: [string, string][] = [
    ['Identity', `One: ${of.session}. Its own key named every host below.`],
    ['Record', `Unbroken, ${of.last} entries.`],
    [
      'Epochs',
      `${lives === 1 ? 'One' : lives}, on ${hosts === 1 ? 'one host' : `${hosts} hosts`}; the first began ${clock(of.epochs[0]?.began_at ?? of.made_at, now)}.`,
    ],
  ]
  for (const came of of.returns) facts.push([`Epoch ${came.epoch}`, returnText(came)])
  if (of.returns.length === 0) facts.push(['Came back', 'Never: it was never away.'])
  if (of.predecessor)
    facts.push([
      'Follows',
      `${of.predecessor}, which ${of.revived ? 'was lost; its command was started again' : 'was discontinued'}.`,
    ])
  facts.push(['Certified', `${ago(of.made_at, now)}, by host ${of.host_key.slice(0, 16)}.`])
  return facts
}

function returnText({ kind, downtime_s, bytes, resets, inputs_lost }: CertifiedReturn): string {
  const said = [
    Object.hasOwn(KINDS, kind) ? KINDS[kind]! : kind,
    `away for ${took(downtime_s)}`,
    bytes > 0 ? `${bytesText(bytes)} restored` : '',
    resets > 0 ? `${resets} ${resets === 1 ? 'connection' : 'connections'} reset` : 'no connection reset',
    inputs_lost > 0
      ? `${inputs_lost} ${inputs_lost === 1 ? 'input' : 'inputs'} after the checkpoint not part of it`
      : '',
  ]
  const text = said.filter(Boolean).join('; ')
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}
