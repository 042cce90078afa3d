// The arithmetic that channels are made of, as a port: hold/crypto-web.ts and hold/crypto-noble.ts are the two ways to
// do it. What is behind it may answer at once or later, so callers await everything and keep the order themselves.
// Hashing has one implementation for all: it needs no key and must be quick.

import { hmac } from '@noble/hashes/hmac.js'
import { sha256 as nobleSha256 } from '@noble/hashes/sha2.js'

export type Later<T> = T | Promise<T>

export const KEY_BYTES = 32
export const SIGNATURE_BYTES = 64
export const TAG_BYTES = 16

/** An X25519 key that is ours. */
export interface Agreement {
  readonly public: Uint8Array
  /** The shared secret; throws handshake_failed for a key that makes it a known constant. */
  agree(theirs: Uint8Array): Later<Uint8Array>
}

/** An Ed25519 key that is ours. */
export interface Signer {
  readonly public: Uint8Array
  sign(text: Uint8Array): Later<Uint8Array>
}

/** AES-256-GCM under one key, the tag at the end. */
export interface Aead {
  seal(nonce: Uint8Array, plain: Uint8Array, bound: Uint8Array): Later<Uint8Array>
  /** null for what was not sealed with it. */
  open(nonce: Uint8Array, ciphertext: Uint8Array, bound: Uint8Array): Later<Uint8Array | null>
}

export interface Crypto {
  readonly kind: 'webcrypto' | 'noble'
  aead(key: Uint8Array): Later<Aead>
  verify(key: Uint8Array, text: Uint8Array, signature: Uint8Array): Later<boolean>
  /** SHA-256 of much data, off the page's thread where that is possible. */
  digest(data: Uint8Array): Later<Uint8Array>
}

/** SHA-256 of little data. */
export function sha256(data: Uint8Array): Uint8Array {
  return nobleSha256(data)
}

export function hmacSha256(key: Uint8Array, data: Uint8Array): Uint8Array {
  return hmac(nobleSha256, key, data)
}

/** Four zero bytes, then the number. */
export function nonceOf(number: number): Uint8Array {
  const nonce = new Uint8Array(12)
  const view = new DataView(nonce.buffer)
  view.setUint32(4, Math.floor(number / 0x1_0000_0000))
  view.setUint32(8, number >>> 0)
  return nonce
}
