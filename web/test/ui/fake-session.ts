// One invented session behind the screens.

import type { PortForwarder } from '../../src/hold/port-forward'
import { signal } from '@preact/signals'
import type {
  Accepted,
  CheckpointInfo,
  Graph,
  Handoff,
  InviteMade,
  JournalPiece,
  LinkState,
  Movability,
  Notice,
  OpenOptions,
  OutputListener,
  Presence,
  Receipt,
  Restored,
  Revived,
  ScreenText,
  SessionHandle,
  SessionInfo,
  Size,
  TurnState,
} from '../../src/hold/api'
import {
  ACTORS,
  CHECKPOINTS,
  COMMANDS,
  GRAPH,
  HANDOFF,
  MACHINE,
  MOVABILITY,
  NOW,
  SCREEN,
  TURN_OTHER,
} from './fixtures'

const ACCEPTED: Accepted = { seq: 1, offset: 0, repeated: false }
const RECEIPT: Receipt = {
  at: NOW,
  before: 'claude',
  scope: '',
  frozen: false,
  tasks: 0,
  seconds: 0.004,
  running: [],
  journal_seq: 312,
  last_input_by: 'claude',
  last_input_at: NOW - 214,
  output_offset: 48213,
  caveat: 'A system call that was under way may still complete.',
  unrecorded: '',
  caught: [],
}

export class FakeSession implements SessionHandle {
  readonly machine = MACHINE.key
  readonly session: string
  readonly info
  readonly turn
  readonly operators
  readonly actors = signal(ACTORS)
  readonly me = signal(ACTORS[0]!)
  readonly rights
  readonly observing = signal(false)
  readonly link
  readonly inputPending = signal(0)
  readonly rtt = signal<number | null>(23)
  onRoundTrip = (): (() => void) => () => undefined
  readonly answers = signal(false)
  readonly typed: string[] = []
  readonly done: string[] = []
  private outputs: OutputListener[] = []
  private notices: ((notice: Notice) => void)[] = []

  constructor(
    private readonly scene: string,
    info: SessionInfo,
    options?: OpenOptions,
  ) {
    this.session = info.name
    this.info = signal<SessionInfo | null>(info)
    this.rights = signal(options?.observe ? ['observe'] : MACHINE.rights)
    this.operators = signal<Presence | null>({ operators: 3, observers: 1, size: info.size })
    this.turn = signal<TurnState | null>(this.firstTurn())
    this.link = signal<LinkState>(this.firstLink())
  }

  private firstTurn(): TurnState {
    const mine = { ...TURN_OTHER, holder: ACTORS[0]!.id, holder_name: 'mara-laptop', holder_kind: 'device' }
    if (this.scene === 'free')
      return {
        turn: { ...TURN_OTHER, holder: '', holder_name: '', holder_kind: '' },
        yours: false,
        waiting: false,
      }
    if (this.scene === 'asked') {
      const asks = {
        actor: ACTORS[1]!.id,
        name: 'claude',
        since: NOW - 20,
        message: 'tests pass here, I want to rerun the linker',
      }
      return { turn: { ...mine, queue: [asks] }, yours: true, waiting: false }
    }
    if (this.scene === 'mine') return { turn: mine, yours: true, waiting: false }
    return { turn: TURN_OTHER, yours: false, waiting: false }
  }

  private firstLink(): LinkState {
    const trouble = {
      code: this.scene,
      message: 'as the host said it',
      hint: 'and what to do',
      retryable: false,
    }
    if (this.scene === 'offline')
      return {
        at: 'offline',
        why: 'the relay does not answer',
        unreached: 'relay',
        since: NOW - 30,
        retryAt: NOW + 8,
        trouble: null,
      }
    if (this.scene === 'fenced') return { at: 'fenced', trouble }
    if (this.scene === 'ended' || this.scene === 'ended-live')
      return {
        at: 'ended',
        ending: {
          code: 1,
          signal: null,
          lost: null,
          cause: null,
          successor: '',
          checkpoint: '',
          moved_to: '',
        },
      }
    if (this.scene === 'actor_revoked' || this.scene === 'no_such_session') return { at: 'refused', trouble }
    if (this.scene === 'connecting') return { at: 'connecting', why: 'asking the relay', since: NOW }
    return { at: 'online' }
  }

  onOutput(listener: OutputListener): () => void {
    this.outputs.push(listener)
    if (this.scene !== 'ended' && this.scene !== 'connecting') queueMicrotask(() => this.paint(SCREEN))
    return () => (this.outputs = this.outputs.filter((one) => one !== listener))
  }
  paint(text: string): void {
    const size = this.info.value!.size
    for (const one of this.outputs)
      void one(new TextEncoder().encode(text), 'resync', size, { offset: 0, keepScrollback: false })
  }
  /** Live bytes, as fast as they are taken. */
  async print(data: Uint8Array): Promise<void> {
    for (const one of this.outputs)
      await one(data, 'live', this.info.value!.size, { offset: 0, keepScrollback: true })
  }
  onNotice(listener: (notice: Notice) => void): () => void {
    this.notices.push(listener)
    return () => (this.notices = this.notices.filter((one) => one !== listener))
  }
  tell(notice: Notice): void {
    for (const one of this.notices) one(notice)
  }
  resync(): void {
    this.done.push('resync')
    this.paint(SCREEN)
  }

  input(bytes: Uint8Array): void {
    this.typed.push(new TextDecoder().decode(bytes))
    void this.print(bytes)
  }
  async paste(text: string): Promise<void> {
    this.done.push(`paste ${text.length}`)
  }
  async submit(text: string): Promise<Accepted> {
    this.done.push(`submit ${text}`)
    return ACCEPTED
  }
  async secret(): Promise<Accepted> {
    this.done.push('secret')
    return ACCEPTED
  }
  resize(size: Size): void {
    this.done.push(`resize ${size.cols}x${size.rows}`)
  }

  async requestTurn(): Promise<TurnState> {
    this.done.push('request')
    this.turn.value = { ...this.turn.value!, waiting: true }
    return this.turn.value
  }
  async withdrawTurn(): Promise<TurnState> {
    return (this.turn.value = { ...this.turn.value!, waiting: false })
  }
  async grantTurn(): Promise<TurnState> {
    return (this.turn.value = { turn: TURN_OTHER, yours: false, waiting: false })
  }
  async yieldTurn(): Promise<TurnState> {
    return this.grantTurn()
  }
  async handOffTurn(): Promise<TurnState> {
    return this.grantTurn()
  }
  async setBlind(blind: boolean): Promise<TurnState> {
    const state = this.turn.value!
    return (this.turn.value = { ...state, turn: { ...state.turn, blind } })
  }
  async seize(): Promise<Receipt> {
    this.done.push('seize')
    const turn = {
      ...TURN_OTHER,
      holder: ACTORS[0]!.id,
      holder_name: 'mara-laptop',
      holder_kind: 'device',
      seized: true,
      since: NOW,
    }
    this.turn.value = { turn, yours: true, waiting: false }
    return RECEIPT
  }
  async halt(): Promise<Receipt> {
    this.info.value = { ...this.info.value!, state: 'halted' }
    return { ...RECEIPT, scope: 'session', frozen: true, tasks: 14 }
  }
  async resume(): Promise<void> {
    this.info.value = { ...this.info.value!, state: 'working' }
  }

  async catchUp(sinceSeq?: number): Promise<Handoff> {
    if (sinceSeq === undefined && this.scene !== 'away') return { ...HANDOFF, since_at: null }
    return sinceSeq === 0 ? { ...HANDOFF, commands: COMMANDS } : HANDOFF
  }
  async journal(sinceSeq = 1): Promise<JournalPiece> {
    const at = (seq: number, actor: Actor4, client: string, observe = false) => ({
      seq,
      at: NOW - 4000 + seq,
      actor: ACTORS[actor]!.id,
      kind: 'attached',
      fields: { operator: `op${actor}`, client, observe },
    })
    const all = [at(201, 0, 'web'), at(202, 1, 'mcp'), at(203, 2, 'hold attach', true)]
    const names = Object.fromEntries(ACTORS.map((one) => [one.id, one.name]))
    return { entries: all.filter((one) => one.seq >= sinceSeq), more: false, names }
  }
  async blame(first = 1) {
    const by = { actor: 'claude', trigger: 'claude', originators: ['claude'] }
    const line = { number: first, text: 'src/solver', command: 5, command_text: '', at: NOW, ...by }
    return { lines: [line], total: 30 }
  }
  async graph(): Promise<Graph> {
    return GRAPH
  }
  async screen(): Promise<ScreenText> {
    const text = 'migrating 00041_runs.sql\nerror: relation "tide_runs" already exists\nrolled back'
    const size = { cols: 80, rows: 24 }
    return { text, cursor_col: 0, cursor_row: 0, size, alternate: false, title: '', offset: 0 }
  }
  async refresh(): Promise<SessionInfo> {
    return this.info.value!
  }
  ports(): Promise<PortForwarder> {
    return Promise.reject(new Error('there are no ports here'))
  }
  async checkpoints(): Promise<CheckpointInfo[]> {
    return [...CHECKPOINTS]
  }
  async canMove(): Promise<Movability> {
    return MOVABILITY
  }
  async certificate(): Promise<string> {
    return '{}'
  }
  async checkpoint(note: string, end: boolean): Promise<CheckpointInfo> {
    this.done.push(`checkpoint ${note}${end ? ' and sleep' : ''}`)
    return { ...CHECKPOINTS[0]!, id: 'ck-new', note, at: NOW }
  }
  restore(): Promise<Restored> {
    this.done.push('restore')
    return new Promise(() => undefined)
  }
  revive(): Promise<Revived> {
    this.done.push('revive')
    return new Promise(() => undefined)
  }
  async pin(pinned: boolean): Promise<SessionInfo> {
    return (this.info.value = { ...this.info.value!, pinned })
  }
  async end(): Promise<SessionInfo> {
    return this.info.value!
  }
  async invite(): Promise<InviteMade> {
    const link = `https://relay.example:7800/i#${'Zm9vYmFyYmF6cXV4'.repeat(6)}`
    const invite = {
      invite: 'ab12',
      reach: 'session:x',
      rights: ['observe'],
      created_by: '',
      created_at: NOW,
      expires_at: NOW + 3600,
      lasts_s: 3600,
      uses: 1,
      joined: [],
      delegations: 0,
      inputs_per_s: null,
      bytes_per_s: null,
      wrong_codes: 0,
      revoked_at: null,
    }
    return { link, invite }
  }
  close(): void {
    this.done.push('close')
  }
}

type Actor4 = 0 | 1 | 2 | 3
