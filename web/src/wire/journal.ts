// Records of a journal as a reader needs them (docs/journal.md): decoded, and checked to follow one another. Seals are
// not checked here: the records came over the host's own channel, and `hold verify` is there for the rest.

import { equal } from './bytes'
import { sha256 } from './crypto'
import { HoldError } from './errors'
import { unpack } from './msgpack'

export interface JournalEntry {
  seq: number
  at: number // seconds since 1970
  actor: string // id; '' is the host
  kind: string // as in docs/journal.md
  fields: Record<string, unknown>
}

const damaged = (message: string) => new HoldError('journal_damaged', message)

/** These records, if their numbers and links are unbroken. */
export function readRecords(records: Uint8Array[]): JournalEntry[] {
  const read: JournalEntry[] = []
  let before: { seq: number; hash: Uint8Array } | null = null
  for (const bytes of records) {
    const [record, parent] = decode(bytes)
    if (before && (record.seq !== before.seq + 1 || !equal(parent, before.hash))) {
      throw damaged(`record ${record.seq} of the journal does not follow record ${before.seq}`)
    }
    before = { seq: record.seq, hash: sha256(bytes) }
    read.push(record)
  }
  return read
}

function decode(bytes: Uint8Array): [JournalEntry, Uint8Array] {
  const record = unpack(bytes)
  if (!Array.isArray(record) || record.length !== 8) throw damaged('not a record of a journal')
  const [seq, at, epoch, actor, , kind, body, parent] = record as unknown[]
  const good =
    Number.isSafeInteger(seq) &&
    typeof at === 'number' &&
    Number.isSafeInteger(epoch) &&
    typeof actor === 'string' &&
    typeof kind === 'string' &&
    typeof body === 'object' &&
    body !== null &&
    parent instanceof Uint8Array
  if (!good) throw damaged('not a record of a journal')
  return [{ seq, at, actor, kind, fields: body } as JournalEntry, parent as Uint8Array]
}
