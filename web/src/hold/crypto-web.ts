// The port's arithmetic by the browser (WebCrypto), which needs a secure context. The device's keys cannot
// be exported: a script in this origin can use them while it runs, but cannot copy them.

import { sha256, type Aead, type Agreement, type Crypto, type Later, type Signer } from '../wire/crypto'
import { handshakeFailed } from '../wire/errors'
import { NobleAead } from './crypto-noble'

// Below this the way to another thread and back takes longer than the hashing.
const DIGEST_AWAY_BYTES = 8 << 10
// The same for sealing and opening: a key and its echo are small, and each way there and back is felt. Keys of channels
// are derived in the page and are bytes in it for as long as they live; keys of the device never are.
const SEAL_AWAY_BYTES = 2 << 10

// The library's types tell shared memory from other memory; nothing here is shared.
const own = (bytes: Uint8Array) => bytes as Uint8Array<ArrayBuffer>

class WebAead implements Aead {
  constructor(
    private readonly key: CryptoKey,
    private readonly small: Aead,
  ) {}

  seal(nonce: Uint8Array, plain: Uint8Array, bound: Uint8Array): Later<Uint8Array> {
    return plain.length < SEAL_AWAY_BYTES
      ? this.small.seal(nonce, plain, bound)
      : this.sealAway(nonce, plain, bound)
  }

  open(nonce: Uint8Array, ciphertext: Uint8Array, bound: Uint8Array): Later<Uint8Array | null> {
    return ciphertext.length < SEAL_AWAY_BYTES
      ? this.small.open(nonce, ciphertext, bound)
      : this.openAway(nonce, ciphertext, bound)
  }

  private async sealAway(nonce: Uint8Array, plain: Uint8Array, bound: Uint8Array): Promise<Uint8Array> {
    const algorithm = { name: 'AES-GCM', iv: own(nonce), additionalData: own(bound) }
    return new Uint8Array(await crypto.subtle.encrypt(algorithm, this.key, own(plain)))
  }

  private async openAway(
    nonce: Uint8Array,
    ciphertext: Uint8Array,
    bound: Uint8Array,
  ): Promise<Uint8Array | null> {
    const algorithm = { name: 'AES-GCM', iv: own(nonce), additionalData: own(bound) }
    try {
      return new Uint8Array(await crypto.subtle.decrypt(algorithm, this.key, own(ciphertext)))
    } catch {
      return null
    }
  }
}

// The host's key is asked about with every signed frame: importing it once is enough.
const verifiers = new Map<string, Promise<CryptoKey>>()
const VERIFIERS_MAX = 64

function verifier(key: Uint8Array): Promise<CryptoKey> {
  const name = String.fromCharCode(...key)
  let found = verifiers.get(name)
  if (!found) {
    if (verifiers.size >= VERIFIERS_MAX) verifiers.clear()
    found = crypto.subtle.importKey('raw', own(key), 'Ed25519', false, ['verify'])
    verifiers.set(name, found)
  }
  return found
}

export const webCrypto: Crypto = {
  kind: 'webcrypto',
  async aead(key) {
    return new WebAead(
      await crypto.subtle.importKey('raw', own(key), 'AES-GCM', false, ['encrypt', 'decrypt']),
      new NobleAead(key),
    )
  },
  async verify(key, text, signature) {
    try {
      return await crypto.subtle.verify('Ed25519', await verifier(key), own(signature), own(text))
    } catch {
      return false
    }
  },
  async digest(data) {
    if (data.length < DIGEST_AWAY_BYTES) return sha256(data)
    return new Uint8Array(await crypto.subtle.digest('SHA-256', own(data)))
  },
}

async function raw(key: CryptoKey): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.exportKey('raw', key))
}

export async function webSigner(pair: CryptoKeyPair): Promise<Signer> {
  return {
    public: await raw(pair.publicKey),
    sign: async (text) => new Uint8Array(await crypto.subtle.sign('Ed25519', pair.privateKey, own(text))),
  }
}

export async function webAgreement(pair: CryptoKeyPair): Promise<Agreement> {
  return {
    public: await raw(pair.publicKey),
    async agree(theirs) {
      try {
        const key = await crypto.subtle.importKey('raw', own(theirs), 'X25519', false, [])
        const algorithm = { name: 'X25519', public: key }
        const secret = new Uint8Array(await crypto.subtle.deriveBits(algorithm, pair.privateKey, 256))
        if (secret.every((byte) => byte === 0)) throw new Error('all zeros')
        return secret
      } catch {
        throw handshakeFailed("the peer's key cannot be used for key agreement")
      }
    },
  }
}

export async function makeSigningPair(): Promise<CryptoKeyPair> {
  return (await crypto.subtle.generateKey('Ed25519', false, ['sign', 'verify'])) as CryptoKeyPair
}

export async function makeAgreementPair(): Promise<CryptoKeyPair> {
  return (await crypto.subtle.generateKey('X25519', false, ['deriveBits'])) as CryptoKeyPair
}

/** Whether this page can use it: a secure context, in a browser that has the algorithms. */
export async function webCryptoWorks(): Promise<boolean> {
  const secure = (globalThis as { isSecureContext?: boolean }).isSecureContext ?? true
  if (!secure || globalThis.crypto?.subtle === undefined) return false
  try {
    await makeAgreementPair()
    await makeSigningPair()
    return true
  } catch {
    return false
  }
}
