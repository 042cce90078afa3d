// A device: an Ed25519 key, which is the actor or the host, and the X25519 key it vouches for.

import { concat, domain } from './bytes'
import { KEY_BYTES, SIGNATURE_BYTES, type Crypto } from './crypto'
import { HoldError } from './errors'

const DOMAIN = domain('holdfast device v1')

export interface Device {
  readonly key: Uint8Array
  readonly static: Uint8Array
  readonly signature: Uint8Array
}

/** What the first key signs. */
export function deviceText(key: Uint8Array, agreement: Uint8Array): Uint8Array {
  return concat(DOMAIN, key, agreement)
}

/** This device, if its Ed25519 key vouches for its X25519 key. */
export async function checkDevice(crypto: Crypto, device: Device): Promise<Device> {
  const sizes =
    device.key.length === KEY_BYTES &&
    device.static.length === KEY_BYTES &&
    device.signature.length === SIGNATURE_BYTES
  if (!sizes || !(await crypto.verify(device.key, deviceText(device.key, device.static), device.signature))) {
    throw new HoldError('bad_signature', "a device's channel key is not signed with the actor's key")
  }
  return device
}
