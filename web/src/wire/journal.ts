// Records of a journal as a reader needs them (docs/journal.md): decoded, and checked to follow one another. Seals are
// not checked here: the records came over the host's own channel, and `hold verify` is there for the rest.

import { equal } from './bytes'
import { sha256 } from './crypto'
import { HoldError } from './errors'
import { unpack } from './msgpack'

interface JournalRecord {
  seq: number
  at: number
  epoch: number
  actor: string
  kind: string
  body: Record<string, unknown>
}

const damaged = (message: string) => new HoldError('journal_damaged', message)

/** These records, if their numbers and links are unbroken. */
export function readRecords(records: Uint8Array[]): JournalRecord[] {
  const read: JournalRecord[] = []
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

function decode(bytes: Uint8Array): [JournalRecord, Uint8Array] {
  const fields = unpack(bytes)
  if (!Array.isArray(fields) || fields.length !== 8) throw damaged('not a record of a journal')
  const [seq, at, epoch, actor, , kind, body, parent] = fields as unknown[]
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
  const record = { seq, at, epoch, actor, kind, body } as JournalRecord
  return [record, parent as Uint8Array]
}
