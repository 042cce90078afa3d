// Everything of one page: its keys, its machines, its open sessions. `openHold` makes the object that screens code
// against (api.ts).

import { computed, signal } from '@preact/signals-core'
import type {
  Actor,
  ActorScore,
  ApprovalCard,
  ApprovalInfo,
  Asked,
  Hold,
  Invitation,
  InvitePreview,
  JoinFailure,
  JoinOutcome,
  Machine,
  OpenOptions,
  SessionCard,
  SessionHandle,
  SessionInfo,
} from './api'
import { asHoldError, HoldError } from '../wire/errors'
import { hex } from '../wire/bytes'
import { decodeChain, type Grant } from '../wire/grants'
import { actorIdOf } from '../wire/ids'
import { parseLink } from '../wire/invites'
import type { RequestFields } from '../wire/messages'
import { type DeviceKeys, makeKeys, useKeys } from './device-keys'
import { EpochStore } from './epoch-store'
import { Errands } from './errands'
import { joinBy, outcomeOf, seeBy } from './join'
import { MachineLink } from './machine-link'
import { OpenSession } from './open-session'
import { MemoryStore, openStore, type Store, type StoredMachine } from './store'

interface HoldOptions {
  store?: Store
  /** The relay this page came from, as an URL without a path: the only one it may talk to. Left out: any. */
  origin?: string | null
}

/** At once; `ready` says when the store was read. Machines are dialled then. */
export function openHold(options: HoldOptions = {}): Hold {
  const page = typeof location === 'undefined' ? null : location.origin
  return new Page(options.store ?? null, options.origin === undefined ? page : options.origin)
}

/** What this device remembers, and what it can do with it. */
interface Loaded {
  store: Store
  device: DeviceKeys
  epochs: EpochStore
}

async function load(given: Store | null): Promise<Loaded & { machines: StoredMachine[] }> {
  const store = given ?? (await openStore())
  let stored = await store.keys()
  if (stored === null) {
    stored = await makeKeys()
    await store.keepKeys(stored)
  }
  const [machines, epochs] = await Promise.all([store.machines(), store.epochs()])
  return { store, device: await useKeys(stored), epochs: new EpochStore(store, epochs), machines }
}

class Page implements Hold {
  readonly ready = signal(false)
  private readonly links = signal<Map<string, MachineLink>>(new Map())
  private readonly loading: Promise<Loaded>
  private loaded: Loaded | null = null
  private readonly unlisten: () => void

  readonly machines = computed(() => [...this.links.value.values()].map((link) => this.machine(link)))
  readonly sessions = computed(() => [...this.links.value.values()].flatMap((link) => cards(link)))
  readonly approvals = computed(() => [...this.links.value.values()].flatMap((link) => approvalsOf(link)))

  constructor(
    store: Store | null,
    private readonly origin: string | null,
  ) {
    this.unlisten = listen(() => this.nudge())
    // A store that cannot be used is worse than one that forgets.
    this.loading = load(store)
      .catch(() => load(new MemoryStore()))
      .then(({ machines, ...loaded }) => {
        this.loaded = loaded
        for (const machine of machines) this.add(machine)
        this.ready.value = true
        return loaded
      })
  }

  get keys(): 'webcrypto' | 'noble' {
    if (this.loaded) return this.loaded.device.crypto.kind
    return globalThis.isSecureContext === false ? 'noble' : 'webcrypto'
  }

  preview(link: string): InvitePreview {
    const parsed = parseLink(link)
    const hostKey = hex(parsed.hostKey)
    const known = this.machines.peek().find(({ key }) => key === hostKey) ?? null
    return { relay: parsed.relay.replace(/^https?:\/\//, ''), hostKey, known }
  }

  async see(link: string): Promise<{ ok: true; seen: Invitation } | JoinFailure> {
    try {
      const parsed = parseLink(link)
      const { device } = await this.loading
      return { ok: true, seen: await this.throughOwn(parsed.relay, (url) => seeBy(device, parsed, url)) }
    } catch (error) {
      return outcomeOf(error)
    }
  }

  async join(link: string, name: string): Promise<JoinOutcome> {
    try {
      const parsed = parseLink(link)
      const { store, device } = await this.loading
      const joined = await this.throughOwn(parsed.relay, (url) => joinBy(device, parsed, url, name))
      const key = hex(parsed.hostKey)
      const before = this.links.peek().get(key)?.stored.peek()
      const machine: StoredMachine = {
        key,
        name: before?.name ?? this.freeName(joined.host_name),
        hostName: joined.host_name,
        relays: [...new Set([parsed.relay, ...joined.relays.map((relay) => relay.split('#')[0] as string)])],
        actor: joined.actor,
        grant: joined.chain.slice(),
        joinedAt: Date.now() / 1000,
      }
      await store.keepMachine(machine)
      this.add(machine)
      const { rights, reach, expires } = (decodeChain(machine.grant).at(-1) as { grant: Grant }).grant
      const session = reach.find((step) => step.startsWith('session:'))?.slice('session:'.length) ?? null
      return {
        ok: true,
        joined: { machine: key, actor: joined.actor, rights, reach, until: expires, session },
      }
    } catch (error) {
      return outcomeOf(error)
    }
  }

  open(machine: string, session: string, options: OpenOptions = {}): SessionHandle {
    return new OpenSession(this.link(machine), (this.loaded as Loaded).epochs, session, options)
  }

  async run(machine: string, options: RequestFields<'run'>): Promise<SessionInfo> {
    const link = this.link(machine)
    const { info } = await link.ask('run', options)
    link.sessions.shown(info)
    return info
  }

  async acknowledge(machine: string, session: string): Promise<void> {
    const link = this.link(machine)
    const { sessions } = await link.ask('acknowledge', { session })
    for (const info of sessions) link.sessions.shown(info)
  }

  answer(machine: string, asked: Asked, text: string): Promise<void> {
    return this.errands(machine).answer(asked, text)
  }

  giveTurn(machine: string, session: string, to: string): Promise<void> {
    return this.errands(machine).giveTurn(session, to)
  }

  resume(machine: string, session: string): Promise<void> {
    return this.errands(machine).resume(session)
  }

  lookAtApprovals(machine: string): Promise<void> {
    return this.link(machine).approvals.refresh()
  }

  approve(machine: string, approval: string, note: string, seen: string): Promise<ApprovalInfo> {
    return this.link(machine).approvals.decide('approve', approval, note, seen)
  }

  deny(machine: string, approval: string, note: string, seen: string): Promise<ApprovalInfo> {
    return this.link(machine).approvals.decide('deny', approval, note, seen)
  }

  async actors(machine: string): Promise<Actor[]> {
    return (await this.link(machine).ask('list_actors', {})).actors
  }

  async score(machine: string, actor: string, days: number): Promise<ActorScore> {
    return (await this.link(machine).ask('score', { actor, days })).score
  }

  refresh(): void {
    this.nudge()
    for (const link of this.links.peek().values()) void link.sessions.refresh()
  }

  async forget(machine: string): Promise<void> {
    await (await this.loading).store.forgetMachine(machine)
    const links = new Map(this.links.peek())
    links.get(machine)?.close()
    links.delete(machine)
    this.links.value = links
  }

  async rename(machine: string, name: string): Promise<void> {
    const link = this.link(machine)
    const renamed = { ...link.stored.peek(), name: name.trim().slice(0, 64) || link.stored.peek().name }
    await (await this.loading).store.keepMachine(renamed)
    link.replace(renamed)
  }

  close(): void {
    this.unlisten()
    for (const link of this.links.peek().values()) link.close()
  }

  private nudge(): void {
    for (const link of this.links.peek().values()) link.nudge()
  }

  private errands(machine: string): Errands {
    return new Errands(this.link(machine), (this.loaded as Loaded).epochs)
  }

  private link(machine: string): MachineLink {
    const found = this.links.peek().get(machine)
    if (found) return found
    throw new HoldError(
      'no_such_machine',
      'this device has no access to that machine',
      'open an invite link for it',
    )
  }

  private add(machine: StoredMachine): void {
    const known = this.links.peek().get(machine.key)
    if (known) return known.replace(machine)
    const link = new MachineLink((this.loaded as Loaded).device, machine, (each) =>
      this.origin ? [this.origin] : each.relays,
    )
    this.links.value = new Map(this.links.peek()).set(machine.key, link)
  }

  private freeName(hostName: string): string {
    const base = hostName.split('.')[0] || 'machine'
    const taken = new Set(this.machines.peek().map(({ name }) => name))
    let name = base
    for (let count = 2; taken.has(name); count++) name = `${base}-${count}`
    return name
  }

  /** A page may connect only to the relay it was loaded from. That relay may be connected to the host as well. */
  private async throughOwn<T>(relay: string, doing: (url: string) => Promise<T>): Promise<T> {
    if (this.origin === null || this.origin === relay) return doing(relay)
    try {
      return await doing(this.origin)
    } catch (error) {
      const { code } = asHoldError(error)
      if (code !== 'host_down' && code !== 'no_such_session') throw error
      throw new HoldError(
        'wrong_relay',
        `this link is for another relay, ${relay.replace(/^https?:\/\//, '')}, which this page cannot connect to`,
        'open the link itself in the browser',
      )
    }
  }

  private machine(link: MachineLink): Machine {
    const { key, name, hostName, relays, actor } = link.stored.value
    const grant = link.grant.value
    return {
      key,
      name,
      hostName,
      relays,
      ...link.report.value,
      actor: link.me.value?.name ?? actor,
      actorId: actorIdOf((this.loaded as Loaded).device.signer.public),
      rights: grant.rights,
      reach: grant.reach,
      until: grant.expires,
    }
  }
}

function cards(link: MachineLink): SessionCard[] {
  const { key, name } = link.stored.value
  const state = link.report.value.link
  return link.sessions.known.value.map((known) => {
    return { machine: key, machineName: name, link: state, ...known }
  })
}

function approvalsOf(link: MachineLink): ApprovalCard[] {
  const { key, name } = link.stored.value
  const state = link.report.value.link
  return link.approvals.known.value.map((each) => ({
    machine: key,
    machineName: name,
    link: state,
    ...each,
  }))
}

/** The network came back, or the page became visible again. */
function listen(nudge: () => void): () => void {
  if (typeof window === 'undefined') return () => undefined
  const seen = () => document.visibilityState === 'visible' && nudge()
  window.addEventListener('online', nudge)
  document.addEventListener('visibilitychange', seen)
  return () => {
    window.removeEventListener('online', nudge)
    document.removeEventListener('visibilitychange', seen)
  }
}
