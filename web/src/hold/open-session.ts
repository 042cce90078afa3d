// Every request a page can make about an open session: one method each. Requests that change nothing are repeated when
// the connection is lost meanwhile; others are not, except inputs, whose sequence numbers make repeating harmless.

import type {
  Accepted,
  BlameLine,
  CheckpointInfo,
  Graph,
  Handoff,
  InviteAsk,
  InviteMade,
  JournalPiece,
  Movability,
  Receipt,
  Restored,
  Revived,
  ScreenText,
  SessionHandle,
  SessionInfo,
  TurnState,
} from './api'
import { asHoldError, HoldError } from '../wire/errors'
import { readRecords } from '../wire/journal'
import { TURN_TEXT_MAX_CHARS } from '../wire/generated/constants'
import {
  type AnswerTo,
  goesBySession,
  type HostMessage,
  mustBeSigned,
  type RequestFields,
  type RequestTag,
} from '../wire/messages'
import { hex, utf8 } from '../wire/bytes'
import { random } from './device-keys'
import { PortForwarder } from './port-forward'
import type { InputTag, Offer } from './unacked-inputs'
import { pieces, PATIENCE_S, TRY_AGAIN_S } from './paste'
import { now } from './task-queue'
import { SessionView } from './session-view'

const STEP_S = 0.25 // until a lost attachment is looked for again
const BACK_S = 20
const CERTIFICATE_S = 120 // the whole record is read for it
const IMAGES_S = 600 // gigabytes of memory, written to a slow disk or read from it

/** A request about this session, without naming it. */
type About<T extends RequestTag> = Omit<RequestFields<T>, 'session'>

export class OpenSession extends SessionView implements SessionHandle {
  // -- input -------------------------------------------------------------------------------------

  submit(text: string, enter = true): Promise<Accepted> {
    return this.settled('submit', { text, enter }, utf8(text).length + 1)
  }

  secret(text: string): Promise<Accepted> {
    return this.settled('submit', { text, enter: true, secret: true }, utf8(text).length + 1, true)
  }

  async paste(text: string, progress?: (sent: number, total: number) => void): Promise<void> {
    // As terminals do it: the end of a line is what the Enter key sends.
    const parts = pieces(text.replace(/\r?\n/g, '\r'))
    const total = parts.reduce((sum, part) => sum + part.length, 0)
    let sent = 0
    for (const part of parts) {
      await this.pastePiece(part)
      sent += part.length
      progress?.(sent, total)
    }
  }

  /** Waits for a program that does not read yet and for rate limits; any other error ends the paste. */
  private async pastePiece(part: string): Promise<void> {
    const deadline = now() + PATIENCE_S
    for (;;) {
      try {
        await this.submit(part, false)
        return
      } catch (thrown) {
        const error = asHoldError(thrown)
        const passes = error.code === 'limit_reached' || error.code === 'rate_limited'
        if (!passes || now() > deadline) throw error
        await new Promise((resolve) => setTimeout(resolve, TRY_AGAIN_S * 1000))
      }
    }
  }

  private settled(tag: InputTag, content: Offer['content'], size: number, once = false): Promise<Accepted> {
    return new Promise((resolve, reject) => {
      const { link } = this
      const at = link.peek().at
      if (at === 'ended' || at === 'refused' || at === 'closed') {
        reject(new HoldError(at === 'ended' ? 'session_ended' : 'host_lost', `the session is ${at}`))
        return
      }
      const settle = (outcome: Accepted | Error) =>
        outcome instanceof Error ? reject(outcome) : resolve(outcome)
      this.offer(tag, content, size, settle, once)
    })
  }

  // -- the turn ----------------------------------------------------------------------------------

  requestTurn(message = ''): Promise<TurnState> {
    const cut = [...message].slice(0, TURN_TEXT_MAX_CHARS).join('')
    return this.aboutTurn('request_turn', { message: cut })
  }
  withdrawTurn(): Promise<TurnState> {
    return this.aboutTurn('withdraw_turn', {})
  }
  grantTurn(to = ''): Promise<TurnState> {
    return this.aboutTurn('grant_turn', { to })
  }
  yieldTurn(): Promise<TurnState> {
    return this.aboutTurn('yield_turn', {})
  }
  handOffTurn(to: string): Promise<TurnState> {
    return this.aboutTurn('hand_off_turn', { to })
  }
  setBlind(blind: boolean): Promise<TurnState> {
    return this.aboutTurn('set_blind', { blind })
  }

  private async aboutTurn<
    T extends 'request_turn' | 'withdraw_turn' | 'grant_turn' | 'yield_turn' | 'hand_off_turn' | 'set_blind',
  >(tag: T, fields: About<T>): Promise<TurnState> {
    const shown = (await this.request(tag, fields)) as HostMessage<'turn_shown'>
    return this.setTurn(shown.turn, shown.yours)
  }

  async seize(fields: About<'seize'>): Promise<Receipt> {
    return (await this.request('seize', fields)).receipt
  }

  async halt(): Promise<Receipt> {
    return (await this.request('halt', {})).receipt
  }

  async resume(): Promise<void> {
    await this.request('resume', {})
  }

  // -- looking -----------------------------------------------------------------------------------

  async catchUp(sinceSeq?: number): Promise<Handoff> {
    const since = sinceSeq === undefined ? {} : { since_seq: Math.max(1, sinceSeq) } // a journal begins with 1
    return (await this.request('catch_up', { ...since, key: hex(random(8)) })).handoff
  }

  async journal(sinceSeq = 1, maxBytes = 262144): Promise<JournalPiece> {
    const shown = await this.request('journal', { since_seq: Math.max(1, sinceSeq), max_bytes: maxBytes })
    return { entries: readRecords(shown.records), more: shown.more, names: shown.names }
  }

  blame(first = 1, last?: number): Promise<{ lines: BlameLine[]; total: number }> {
    return this.request('blame', { first, ...(last === undefined ? {} : { last }) })
  }

  async graph(): Promise<Graph> {
    return (await this.request('graph', {})).graph
  }

  screen(scrollback = false): Promise<ScreenText> {
    return this.request('screen', { scrollback })
  }

  async refresh(): Promise<SessionInfo> {
    const { info } = await this.request('show', {})
    this.setInfo(info)
    return info
  }

  /** Connections to ports of the session's programs, over a channel of their own. */
  ports(): Promise<PortForwarder> {
    return PortForwarder.make(this.machineLink, this.epochs, this.bestName)
  }

  // -- checkpoints -------------------------------------------------------------------------------

  async checkpoints(): Promise<CheckpointInfo[]> {
    return (await this.machineLink.ask('checkpoints', { session: this.bestName })).checkpoints
  }

  async canMove(): Promise<Movability> {
    return (await this.machineLink.ask('can_move', { session: this.bestName })).movability
  }

  async certificate(): Promise<string> {
    const asked = { session: this.bestName }
    return (await this.machineLink.ask('certificate', asked, CERTIFICATE_S)).certificate
  }

  async checkpoint(note: string, end: boolean): Promise<CheckpointInfo> {
    try {
      return (await this.request('checkpoint', { note, end }, IMAGES_S)).checkpoint
    } catch (error) {
      const made = end ? await this.sleepsIn() : undefined
      if (made) return made
      throw error
    }
  }

  /** Its channel ends as it falls asleep, and with it the way of the answer. */
  private async sleepsIn(): Promise<CheckpointInfo | undefined> {
    const link = this.link.peek()
    const id = link.at === 'ended' ? link.ending?.checkpoint : ''
    return id ? (await this.checkpoints()).find((one) => one.id === id) : undefined
  }

  async restore(): Promise<Restored> {
    const { info, report } = await this.machineLink.ask('restore', { target: this.bestName }, IMAGES_S)
    this.machineLink.sessions.shown(info)
    return { info, report }
  }

  async revive(): Promise<Revived> {
    const revived = await this.machineLink.ask('revive', { session: this.bestName })
    this.machineLink.sessions.shown(revived.info)
    return revived
  }

  async pin(pinned: boolean): Promise<SessionInfo> {
    const { info } = await this.request('pin', { pinned })
    this.setInfo(info)
    return info
  }

  // -- the rest ----------------------------------------------------------------------------------

  async end(): Promise<SessionInfo> {
    const { info } = await this.request('end', {})
    this.setInfo(info)
    return info
  }

  invite(ask: InviteAsk): Promise<InviteMade> {
    return this.machineLink.ask('make_invite', { reach: [`session:${this.bestName}`], ...ask })
  }

  /** The id if it is known, which names it whatever others are called. */
  private get bestName(): string {
    return this.info.peek()?.id ?? this.session
  }

  /** Through the session's own channel if there is one; requests that change nothing, otherwise through the host's. */
  private async request<T extends RequestTag>(
    tag: T,
    fields: About<T>,
    patience?: number,
  ): Promise<AnswerTo<T>> {
    const deadline = now() + BACK_S
    for (;;) {
      const about = { ...fields, session: this.bestName } as unknown as RequestFields<T>
      const at = this.link.peek().at
      try {
        if (this.attachment) return await this.attachment.connection.ask(tag, about, patience)
        if (!goesBySession(tag) || at === 'fenced' || at === 'ended')
          return await this.machineLink.ask(tag, about, patience)
      } catch (thrown) {
        const error = asHoldError(thrown)
        const again = error.code === 'host_lost' && !mustBeSigned(tag) && now() < deadline
        if (!again) throw error
        continue
      }
      if (at === 'closed' || at === 'refused' || now() > deadline) {
        throw new HoldError('host_lost', 'the session is unreachable', 'wait until it is back', true)
      }
      await new Promise((resolve) => setTimeout(resolve, STEP_S * 1000))
    }
  }
}
