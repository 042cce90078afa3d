// Inputs as evidence: each is signed by the actor's key over where and when it was meant for, and over the input before
// it. One chain belongs to one channel here: what is sent again after a loss is decided where inputs are
// numbered (`seq` of docs/protocol.md), so nothing is kept for the channel's sake.

import { concat, domain, unhex, u64, utf8 } from './bytes'
import { sha256, type Signer } from './crypto'
import { broken } from './errors'

const INPUT_DOMAIN = domain('holdfast input v1')
const STREAM_DOMAIN = domain('holdfast input stream v1')

/** How far a stream has come: the number of its last input, and the head of its chain. */
interface Mark {
  seq: number
  head: Uint8Array
}

interface Place {
  session: string
  epoch: number
  channel: Uint8Array // hash of the channel
  stream: string // 32 hexadecimal digits
}

/** What is signed. */
function inputText(place: Place, seq: number, before: Uint8Array, payload: Uint8Array): Uint8Array {
  return concat(
    INPUT_DOMAIN,
    utf8(place.session),
    u64(place.epoch),
    place.channel,
    unhex(place.stream),
    u64(seq),
    before,
    sha256(payload),
  )
}

/** The mark of a stream that has no input yet. */
export function genesis(session: string, key: Uint8Array, stream: string): Mark {
  return { seq: 0, head: sha256(concat(STREAM_DOMAIN, utf8(session), key, unhex(stream))) }
}

/** The inputs of one channel, in the order in which `sign` is called; calls must not overlap. */
export class InputChain {
  mark: Mark
  private acceptedSeq = 0

  constructor(
    private readonly signer: Signer,
    private readonly place: Place,
  ) {
    this.mark = genesis(place.session, signer.public, place.stream)
  }

  /** The body of an INPUT record with this payload. */
  async sign(payload: Uint8Array): Promise<Uint8Array> {
    const seq = this.mark.seq + 1
    const text = inputText(this.place, seq, this.mark.head, payload)
    const signature = await this.signer.sign(text)
    this.mark = { seq, head: sha256(concat(text, signature)) }
    return concat(u64(seq), signature, payload)
  }

  /** The host has taken all inputs up to this one. */
  accepted(seq: number): void {
    if (seq < this.acceptedSeq || seq > this.mark.seq) {
      throw broken(`the host accepted input ${seq}; ${this.mark.seq} were sent`)
    }
    this.acceptedSeq = seq
  }
}
