// The project's test vectors, read from where its documents have them.

import { readFileSync } from 'node:fs'
import { nobleAgreement, nobleCrypto, nobleSigner } from '../src/hold/crypto-noble'
import { webAgreement, webCrypto, webSigner } from '../src/hold/crypto-web'
import { base64url, unhex } from '../src/wire/bytes'
import type { Agreement, Crypto, Signer } from '../src/wire/crypto'

// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Json = any

export function vectors(name: string): Json {
  return JSON.parse(readFileSync(new URL(`../../docs/${name}-vectors.json`, import.meta.url), 'utf8'))
}

/** Bytes are written as {"hex": "..."} in the vectors. */
export function plain(value: Json): Json {
  if (Array.isArray(value)) return value.map(plain)
  if (value === null || typeof value !== 'object') return value
  if (Object.keys(value).length === 1 && typeof value.hex === 'string') return unhex(value.hex)
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, plain(each)]))
}

/** Either way to do the arithmetic, with keys from known bytes. */
export interface Way {
  crypto: Crypto
  signer(seed: string): Promise<Signer>
  agreement(secret: string): Promise<Agreement>
}

async function imported(
  kind: 'Ed25519' | 'X25519',
  secret: string,
  known: Uint8Array,
): Promise<CryptoKeyPair> {
  const jwk = { kty: 'OKP', crv: kind, x: base64url(known), d: base64url(unhex(secret)) }
  const uses: KeyUsage[] = kind === 'Ed25519' ? ['sign'] : ['deriveBits']
  const publicJwk = { kty: 'OKP', crv: kind, x: base64url(known) }
  return {
    privateKey: await crypto.subtle.importKey('jwk', jwk, kind, false, uses),
    publicKey: await crypto.subtle.importKey(
      'jwk',
      publicJwk,
      kind,
      true,
      kind === 'Ed25519' ? ['verify'] : [],
    ),
  }
}

export const WAYS: Way[] = [
  {
    crypto: nobleCrypto,
    signer: async (seed) => nobleSigner(unhex(seed)),
    agreement: async (secret) => nobleAgreement(unhex(secret)),
  },
  {
    crypto: webCrypto,
    signer: async (seed) => webSigner(await imported('Ed25519', seed, nobleSigner(unhex(seed)).public)),
    agreement: async (secret) =>
      webAgreement(await imported('X25519', secret, nobleAgreement(unhex(secret)).public)),
  },
]
