// What a device remembers, in the browser's store and in its twin in memory.

import 'fake-indexeddb/auto'
import { IDBFactory } from 'fake-indexeddb'
import { beforeEach, describe, expect, test } from 'vitest'
import { makeKeys, useKeys } from '../src/hold/device-keys'
import { EpochStore } from '../src/hold/epoch-store'
import { MemoryStore, openStore, type StoredMachine } from '../src/hold/store'
import { checkDevice } from '../src/wire/device'

const machine: StoredMachine = {
  key: 'ab'.repeat(32),
  name: 'box',
  hostName: 'box.example',
  relays: ['https://relay.example'],
  actor: 'phone',
  grant: new Uint8Array([1, 2, 3]),
  joinedAt: 1,
}

beforeEach(() => {
  globalThis.indexedDB = new IDBFactory()
})

describe.each([
  ['IndexedDB', openStore],
  ['memory', async () => new MemoryStore()],
])('%s', (_, open) => {
  test('machines are kept, replaced and forgotten', async () => {
    const store = await open()
    await store.keepMachine(machine)
    await store.keepMachine({ ...machine, name: 'other' })
    expect((await store.machines()).map(({ name }) => name)).toEqual(['other'])
    expect((await store.machines())[0]?.grant).toEqual(machine.grant)
    await store.forgetMachine(machine.key)
    expect(await store.machines()).toEqual([])
  })

  test('an epoch never falls', async () => {
    const store = await open()
    await store.keepEpoch('s', 4)
    await store.keepEpoch('s', 3)
    expect(await store.epochs()).toEqual(new Map([['s', 4]]))
    const epochs = new EpochStore(store, await store.epochs())
    epochs.saw('s', 2)
    expect(epochs.floor('s').highest).toBe(4)
  })

  test('there are no keys at first', async () => {
    expect(await (await open()).keys()).toBe(null)
  })
})

test('another page of the same origin finds what was kept', async () => {
  await (await openStore()).keepMachine(machine)
  expect((await (await openStore()).machines()).length).toBe(1)
})

test.each([true, false])('a device vouches for itself; secure context: %s', async (secure) => {
  Object.assign(globalThis, { isSecureContext: secure })
  const stored = await makeKeys()
  expect(stored.kind).toBe(secure ? 'webcrypto' : 'noble')
  const one = await useKeys(stored)
  const again = await useKeys(stored)
  await checkDevice(one.crypto, one.device)
  expect(again.device.key).toEqual(one.device.key)
  const [first, second] = [await one.ephemeral(), await one.ephemeral()]
  expect(first.public).not.toEqual(second.public)
  expect(await first.agree(second.public)).toEqual(await second.agree(first.public))
})

test("the browser's keys cannot be read out", async () => {
  Object.assign(globalThis, { isSecureContext: true })
  const stored = await makeKeys()
  if (stored.kind !== 'webcrypto') throw new Error('no WebCrypto here')
  for (const { privateKey } of [stored.signing, stored.agreement]) {
    expect(privateKey.extractable).toBe(false)
    await expect(crypto.subtle.exportKey('jwk', privateKey)).rejects.toThrow()
  }
})
