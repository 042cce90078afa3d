// This device's two keys, in the form they are kept in, and made into something that signs and agrees. A device has one
// pair for all machines: each machine knows it by a grant of its own.

import type { Agreement, Crypto, Later, Signer } from '../wire/crypto'
import { type Device, deviceText } from '../wire/device'
import { nobleAgreement, nobleCrypto, nobleSigner } from './crypto-noble'
import {
  makeAgreementPair,
  makeSigningPair,
  webAgreement,
  webCrypto,
  webCryptoWorks,
  webSigner,
} from './crypto-web'

/** As kept in the device store. The browser stores its own keys without showing them. */
export type StoredKeys =
  | { kind: 'webcrypto'; signing: CryptoKeyPair; agreement: CryptoKeyPair }
  | { kind: 'noble'; seed: Uint8Array; secret: Uint8Array }

export interface DeviceKeys {
  crypto: Crypto
  signer: Signer
  agreement: Agreement
  device: Device
  /** A new key for one handshake. */
  ephemeral(): Later<Agreement>
}

export function random(size: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(size))
}

export async function makeKeys(): Promise<StoredKeys> {
  if (await webCryptoWorks()) {
    return { kind: 'webcrypto', signing: await makeSigningPair(), agreement: await makeAgreementPair() }
  }
  return { kind: 'noble', seed: random(32), secret: random(32) }
}

export async function useKeys(stored: StoredKeys): Promise<DeviceKeys> {
  const web = stored.kind === 'webcrypto'
  const signer = web ? await webSigner(stored.signing) : nobleSigner(stored.seed)
  const agreement = web ? await webAgreement(stored.agreement) : nobleAgreement(stored.secret)
  const signature = await signer.sign(deviceText(signer.public, agreement.public))
  return {
    crypto: web ? webCrypto : nobleCrypto,
    signer,
    agreement,
    device: { key: signer.public, static: agreement.public, signature },
    ephemeral: web ? async () => webAgreement(await makeAgreementPair()) : () => nobleAgreement(random(32)),
  }
}
