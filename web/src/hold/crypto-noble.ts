// The port's arithmetic by an audited JavaScript library, for pages that are not a secure context and browsers without
// the algorithms. Everything is synchronous. Keys are bytes in the page's memory and store: any script in this
// origin can read them. That is why crypto-web.ts is preferred where it is available.

import { gcm } from '@noble/ciphers/aes.js'
import { ed25519, x25519 } from '@noble/curves/ed25519.js'
import { sha256, type Aead, type Agreement, type Crypto, type Signer } from '../wire/crypto'
import { handshakeFailed } from '../wire/errors'

export class NobleAead implements Aead {
  private readonly key: Uint8Array

  constructor(key: Uint8Array) {
    this.key = key.slice()
  }

  seal(nonce: Uint8Array, plain: Uint8Array, bound: Uint8Array): Uint8Array {
    return gcm(this.key, nonce, bound).encrypt(plain)
  }

  open(nonce: Uint8Array, ciphertext: Uint8Array, bound: Uint8Array): Uint8Array | null {
    try {
      return gcm(this.key, nonce, bound).decrypt(ciphertext)
    } catch {
      return null
    }
  }
}

export const nobleCrypto: Crypto = {
  kind: 'noble',
  aead: (key) => new NobleAead(key),
  verify(key, text, signature) {
    try {
      return ed25519.verify(signature, text, key, { zip215: false })
    } catch {
      return false
    }
  },
  digest: sha256,
}

export function nobleSigner(seed: Uint8Array): Signer {
  const held = seed.slice()
  return { public: ed25519.getPublicKey(held), sign: (text) => ed25519.sign(text, held) }
}

export function nobleAgreement(secret: Uint8Array): Agreement {
  const held = secret.slice()
  return {
    public: x25519.getPublicKey(held),
    agree(theirs) {
      try {
        return x25519.getSharedSecret(held, theirs) // throws when the secret would be all zeros
      } catch {
        throw handshakeFailed("the peer's key cannot be used for key agreement")
      }
    },
  }
}
