// A Hold without a network, for working on the screens and for tests of them. What it tells is chosen by
// the name of a scene; what is done to it is remembered in `done`.

import { signal } from '@preact/signals'
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
  Trouble,
} from '../../src/hold/api'
import { ROLES } from '../../src/hold/api'
import { FakeSession } from './fake-session'
import { ACTORS, CARDS, FAR, MACHINE, NOW, SCORE } from './fixtures'

export class FakeHold implements Hold {
  readonly machines = signal<Machine[]>([MACHINE, FAR])
  readonly sessions = signal<SessionCard[]>(CARDS)
  readonly approvals = signal<ApprovalCard[]>([])
  readonly ready = signal(true)
  readonly keys = 'webcrypto' as const
  readonly done: string[] = []
  opened: FakeSession | null = null

  constructor(private readonly scene: string) {
    if (scene === 'empty') {
      this.machines.value = []
      this.sessions.value = []
    }
    if (scene === 'revoked') {
      const trouble = {
        code: 'actor_revoked',
        message: 'This device was shut out by mara.',
        hint: 'Ask who runs the machine.',
        retryable: false,
      }
      this.machines.value = [MACHINE, { ...FAR, trouble }]
    }
  }

  preview(link: string): InvitePreview {
    if (this.scene === 'bad_link' || !link.includes('#')) {
      throw { code: 'bad_link', message: 'the link has no secret', hint: 'Copy all of it', retryable: false }
    }
    return { relay: 'relay.example:7800', hostKey: 'c3'.repeat(32), known: null }
  }

  async see(_link: string): Promise<{ ok: true; seen: Invitation } | JoinFailure> {
    if (this.scene === 'expired' || this.scene === 'used' || this.scene === 'unreachable') {
      return { ok: false, reason: this.scene, trouble: this.noInvite() }
    }
    return {
      ok: true,
      seen: {
        inviter: 'jonas',
        host_name: 'build-1',
        reach: [`session:${CARDS[0]!.info.id}`],
        names: { [CARDS[0]!.info.id]: CARDS[0]!.info.name },
        rights: [...ROLES.execute],
        expires_at: NOW + 3600,
        lasts_s: 8 * 3600,
        uses_left: 1,
      },
    }
  }

  private noInvite(): Trouble {
    const message = 'the invite was good until 12:00'
    return { code: `invite_${this.scene}`, message, hint: '', retryable: false }
  }

  async join(_link: string, name: string): Promise<JoinOutcome> {
    this.done.push(`join ${name}`)
    if (this.scene === 'expired' || this.scene === 'used' || this.scene === 'unreachable') {
      return { ok: false, reason: this.scene, trouble: this.noInvite() }
    }
    return {
      ok: true,
      joined: {
        machine: MACHINE.key,
        actor: name,
        rights: ['observe'],
        reach: [],
        until: NOW + 3600,
        session: CARDS[0]!.info.id,
      },
    }
  }

  open(_machine: string, session: string, options?: OpenOptions): SessionHandle {
    const card = this.sessions.value.find((one) => one.info.name === session || one.info.id === session)
    this.opened = new FakeSession(this.scene, card?.info ?? CARDS[0]!.info, options)
    return this.opened
  }

  async run(): Promise<SessionInfo> {
    return CARDS[0]!.info
  }
  async actors(): Promise<Actor[]> {
    return ACTORS
  }
  async score(): Promise<ActorScore> {
    return SCORE
  }
  async lookAtApprovals(): Promise<void> {}
  approve(_machine: string, approval: string, note: string): Promise<ApprovalInfo> {
    return this.decide(approval, 'approved', note)
  }
  deny(_machine: string, approval: string, note: string): Promise<ApprovalInfo> {
    return this.decide(approval, 'denied', note)
  }

  private async decide(approval: string, status: string, note: string): Promise<ApprovalInfo> {
    this.done.push(`${status} ${approval}`)
    this.approvals.value = this.approvals.value.map((card) =>
      card.info.id === approval ? { ...card, info: { ...card.info, status }, by: MACHINE.actor, note } : card,
    )
    return this.approvals.value.find((card) => card.info.id === approval)!.info
  }

  async answer(_machine: string, asked: Asked, text: string): Promise<void> {
    this.done.push(`answer ${asked.id} ${text}`)
  }
  async giveTurn(_machine: string, session: string, to: string): Promise<void> {
    this.done.push(`give ${session} ${to}`)
  }
  async resume(_machine: string, session: string): Promise<void> {
    this.done.push(`resume ${session}`)
  }

  refresh(): void {}
  async acknowledge(machine: string, session: string): Promise<void> {
    this.sessions.value = this.sessions.value.map((card) =>
      card.machine === machine && card.info.id === session
        ? { ...card, info: { ...card.info, acknowledged_at: Date.now() / 1000 } }
        : card,
    )
  }

  async forget(machine: string): Promise<void> {
    this.machines.value = this.machines.value.filter((one) => one.key !== machine)
  }
  async rename(): Promise<void> {}
  close(): void {}
}
