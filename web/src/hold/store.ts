// What this device stores: its keys, the machines it joined with their grants, and the highest epochs seen. In the
// browser it is IndexedDB, for this origin only; where there is none (some private windows) it lasts as long as the page.

import { HoldError } from '../wire/errors'
import type { StoredKeys } from './device-keys'

/** A machine as it is kept. */
export interface StoredMachine {
  key: string // the host's Ed25519 key, hexadecimal
  name: string
  hostName: string
  relays: string[]
  actor: string
  grant: Uint8Array // the chain
  joinedAt: number
}

export interface Store {
  keys(): Promise<StoredKeys | null>
  keepKeys(keys: StoredKeys): Promise<void>
  machines(): Promise<StoredMachine[]>
  keepMachine(machine: StoredMachine): Promise<void>
  forgetMachine(key: string): Promise<void>
  epochs(): Promise<Map<string, number>>
  keepEpoch(session: string, epoch: number): Promise<void>
}

export class MemoryStore implements Store {
  private stored: StoredKeys | null = null
  private readonly known = new Map<string, StoredMachine>()
  private readonly seen = new Map<string, number>()

  async keys(): Promise<StoredKeys | null> {
    return this.stored
  }
  async keepKeys(keys: StoredKeys): Promise<void> {
    this.stored = keys
  }
  async machines(): Promise<StoredMachine[]> {
    return [...this.known.values()]
  }
  async keepMachine(machine: StoredMachine): Promise<void> {
    this.known.set(machine.key, machine)
  }
  async forgetMachine(key: string): Promise<void> {
    this.known.delete(key)
  }
  async epochs(): Promise<Map<string, number>> {
    return new Map(this.seen)
  }
  async keepEpoch(session: string, epoch: number): Promise<void> {
    this.seen.set(session, Math.max(epoch, this.seen.get(session) ?? 0))
  }
}

const NAME = 'holdfast'
const VERSION = 1
const DEVICE = 'device'
const MACHINES = 'machines'
const EPOCHS = 'epochs'

const failed = (error: unknown) =>
  new HoldError(
    'storage_failed',
    `this browser does not store data for this page: ${error instanceof Error ? error.message : String(error)}`,
    'allow storage for this site, or leave the private window',
  )

function done<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(failed(request.error))
  })
}

class IndexedStore implements Store {
  constructor(private readonly base: IDBDatabase) {}

  async keys(): Promise<StoredKeys | null> {
    return ((await done(this.read(DEVICE).get('keys'))) as StoredKeys | undefined) ?? null
  }
  async keepKeys(keys: StoredKeys): Promise<void> {
    await done(this.write(DEVICE).put(keys, 'keys'))
  }
  async machines(): Promise<StoredMachine[]> {
    return (await done(this.read(MACHINES).getAll())) as StoredMachine[]
  }
  async keepMachine(machine: StoredMachine): Promise<void> {
    await done(this.write(MACHINES).put(machine, machine.key))
  }
  async forgetMachine(key: string): Promise<void> {
    await done(this.write(MACHINES).delete(key))
  }
  async epochs(): Promise<Map<string, number>> {
    const store = this.read(EPOCHS)
    const [names, values] = await Promise.all([done(store.getAllKeys()), done(store.getAll())])
    return new Map(names.map((name, at) => [String(name), Number(values[at])]))
  }
  async keepEpoch(session: string, epoch: number): Promise<void> {
    // In one transaction: another page of this origin may have seen a later one.
    const store = this.write(EPOCHS)
    const known = Number((await done(store.get(session))) ?? 0)
    if (epoch > known) await done(store.put(epoch, session))
  }

  private read(name: string): IDBObjectStore {
    return this.base.transaction(name, 'readonly').objectStore(name)
  }
  private write(name: string): IDBObjectStore {
    return this.base.transaction(name, 'readwrite').objectStore(name)
  }
}

export async function openStore(): Promise<Store> {
  if (typeof indexedDB === 'undefined') return new MemoryStore()
  try {
    const request = indexedDB.open(NAME, VERSION)
    request.onupgradeneeded = () => {
      for (const name of [DEVICE, MACHINES, EPOCHS]) request.result.createObjectStore(name)
    }
    return new IndexedStore(await done(request))
  } catch {
    return new MemoryStore()
  }
}
