// The Noise handshake (revision 34 of its specification) with X25519, AES-256-GCM and SHA-256, for both roles:
//   IK       the operator knows the host's static key
//   IKpsk1   the same with a secret that both know: an invitation's code
// Which keys to trust is not decided here. The ephemeral key is an argument; it must be new for every handshake.

import { concat, utf8 } from './bytes'
import { hmacSha256, nonceOf, sha256, TAG_BYTES, KEY_BYTES } from './crypto'
import type { Aead, Agreement, Crypto } from './crypto'
import { handshakeFailed } from './errors'

export const NOISE_MESSAGE_MAX_BYTES = 65535
const NOTHING: Uint8Array = new Uint8Array(0)
// 2^64 - 1: kept for making the next key.
const LAST_NONCE = new Uint8Array([0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255])

interface Pattern {
  readonly name: string
  readonly messages: readonly (readonly string[])[]
}

export const IK: Pattern = {
  name: 'IK',
  messages: [
    ['e', 'es', 's', 'ss'],
    ['e', 'ee', 'se'],
  ],
}
export const IK_PSK1: Pattern = {
  name: 'IKpsk1',
  messages: [
    ['e', 'es', 's', 'ss', 'psk'],
    ['e', 'ee', 'se'],
  ],
}

/** One direction: a key and the number of the next message under it. */
export class Cipher {
  number = 0

  private constructor(
    private readonly crypto: Crypto,
    private aead: Aead,
  ) {}

  static async of(crypto: Crypto, key: Uint8Array): Promise<Cipher> {
    return new Cipher(crypto, await crypto.aead(key))
  }

  async seal(plain: Uint8Array, bound: Uint8Array = NOTHING): Promise<Uint8Array> {
    return this.aead.seal(nonceOf(this.number++), plain, bound)
  }

  /** null for anything but the next message of the peer. */
  async open(ciphertext: Uint8Array, bound: Uint8Array = NOTHING): Promise<Uint8Array | null> {
    const plain = await this.aead.open(nonceOf(this.number), ciphertext, bound)
    if (plain !== null) this.number++
    return plain
  }

  /** A new key made from this one, which cannot be derived from the new one. Numbers continue. */
  async rekey(): Promise<void> {
    const made = await this.aead.seal(LAST_NONCE, new Uint8Array(KEY_BYTES), NOTHING)
    this.aead = await this.crypto.aead(made.slice(0, KEY_BYTES))
  }
}

interface HandshakeOptions {
  initiator: boolean
  static: Agreement
  ephemeral: Agreement
  remoteStatic?: Uint8Array
  prologue: Uint8Array
  psk?: Uint8Array
}

/** One side of a handshake. A message that does not fit ends it: every later call fails too. */
export class Handshake {
  hash: Uint8Array
  remoteStatic: Uint8Array
  private chaining: Uint8Array
  private cipher: Cipher | null = null
  private remoteEphemeral: Uint8Array = NOTHING
  private next = 0

  constructor(
    private readonly crypto: Crypto,
    private readonly pattern: Pattern,
    private readonly options: HandshakeOptions,
  ) {
    const wanted = pattern.messages.flat().includes('psk')
    if (wanted !== (options.psk !== undefined) || (options.psk && options.psk.length !== KEY_BYTES)) {
      throw handshakeFailed('wrong number or size of pre-shared keys for this handshake')
    }
    const name = utf8(`Noise_${pattern.name}_25519_AESGCM_SHA256`)
    this.hash = name.length <= 32 ? concat(name, new Uint8Array(32 - name.length)) : sha256(name)
    this.chaining = this.hash
    this.remoteStatic = options.remoteStatic ?? NOTHING
    this.mixHash(options.prologue)
    this.mixHash(options.initiator ? this.remoteStatic : options.static.public)
  }

  get finished(): boolean {
    return this.next === this.pattern.messages.length
  }

  /** Our next message. */
  async write(payload: Uint8Array = NOTHING): Promise<Uint8Array> {
    const parts: Uint8Array[] = []
    for (const token of this.tokens(true)) {
      if (token === 'e') {
        parts.push(this.options.ephemeral.public)
        await this.mixEphemeral(this.options.ephemeral.public)
      } else if (token === 's') {
        parts.push(await this.seal(this.options.static.public))
      } else {
        await this.mix(token)
      }
    }
    parts.push(await this.seal(payload))
    const message = concat(...parts)
    if (message.length > NOISE_MESSAGE_MAX_BYTES) {
      throw handshakeFailed(`a message of ${message.length} bytes is too long for a handshake`)
    }
    this.next++
    return message
  }

  /** The payload of the peer's next message. */
  async read(message: Uint8Array): Promise<Uint8Array> {
    const tokens = this.tokens(false)
    const after = this.next + 1
    this.next = this.pattern.messages.length + 1 // over, unless all of it fits
    if (message.length > NOISE_MESSAGE_MAX_BYTES) {
      throw handshakeFailed(`a message of ${message.length} bytes is too long for a handshake`)
    }
    let rest = message
    const cut = (size: number): Uint8Array => {
      if (rest.length < size) throw handshakeFailed('a handshake message is truncated')
      const part = rest.subarray(0, size)
      rest = rest.subarray(size)
      return part
    }
    for (const token of tokens) {
      if (token === 'e') {
        this.remoteEphemeral = cut(KEY_BYTES)
        await this.mixEphemeral(this.remoteEphemeral)
      } else if (token === 's') {
        this.remoteStatic = await this.open(cut(KEY_BYTES + (this.cipher ? TAG_BYTES : 0)))
      } else {
        await this.mix(token)
      }
    }
    const payload = await this.open(rest)
    this.next = after
    return payload
  }

  /** The keys for what we send and what we receive. */
  splitKeys(): [Uint8Array, Uint8Array] {
    if (!this.finished) throw handshakeFailed('the handshake is not finished')
    const [first, second] = derive(this.chaining, NOTHING, 2) as [Uint8Array, Uint8Array]
    return this.options.initiator ? [first, second] : [second, first]
  }

  async split(): Promise<[Cipher, Cipher]> {
    const [sending, receiving] = this.splitKeys()
    return [await Cipher.of(this.crypto, sending), await Cipher.of(this.crypto, receiving)]
  }

  private tokens(ours: boolean): readonly string[] {
    const message = this.pattern.messages[this.next]
    if (message === undefined) throw handshakeFailed('the handshake is over')
    if (ours !== (this.options.initiator === (this.next % 2 === 0))) {
      throw handshakeFailed("it is the other side's turn in the handshake")
    }
    return message
  }

  private async mix(token: string): Promise<void> {
    if (token === 'psk') {
      const [chaining, mixed, key] = derive(this.chaining, this.options.psk as Uint8Array, 3)
      this.chaining = chaining as Uint8Array
      this.mixHash(mixed as Uint8Array)
      this.cipher = await Cipher.of(this.crypto, key as Uint8Array)
      return
    }
    const [ofInitiator, ofResponder] = [token[0], token[1]]
    const [mine, theirs] = this.options.initiator ? [ofInitiator, ofResponder] : [ofResponder, ofInitiator]
    const pair = mine === 'e' ? this.options.ephemeral : this.options.static
    await this.mixKey(await pair.agree(theirs === 'e' ? this.remoteEphemeral : this.remoteStatic))
  }

  private async mixEphemeral(key: Uint8Array): Promise<void> {
    this.mixHash(key)
    if (this.options.psk) await this.mixKey(key)
  }

  private async mixKey(secret: Uint8Array): Promise<void> {
    const [chaining, key] = derive(this.chaining, secret, 2)
    this.chaining = chaining as Uint8Array
    this.cipher = await Cipher.of(this.crypto, key as Uint8Array)
  }

  private mixHash(data: Uint8Array): void {
    this.hash = sha256(concat(this.hash, data))
  }

  private async seal(plain: Uint8Array): Promise<Uint8Array> {
    const ciphertext = this.cipher ? await this.cipher.seal(plain, this.hash) : plain
    this.mixHash(ciphertext)
    return ciphertext
  }

  private async open(ciphertext: Uint8Array): Promise<Uint8Array> {
    const plain = this.cipher ? await this.cipher.open(ciphertext, this.hash) : ciphertext
    if (plain === null) {
      throw handshakeFailed(
        'the handshake failed: different keys, a different session, or an altered message',
      )
    }
    this.mixHash(ciphertext)
    return plain
  }
}

/** HKDF of the specification. */
function derive(chaining: Uint8Array, secret: Uint8Array, count: number): Uint8Array[] {
  const base = hmacSha256(chaining, secret)
  const made: Uint8Array[] = []
  let last = NOTHING
  for (let index = 1; index <= count; index++) {
    last = hmacSha256(base, concat(last, new Uint8Array([index])))
    made.push(last)
  }
  return made
}
