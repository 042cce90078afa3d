// Every request a page can make about an open session: one method each. Requests that change nothing are repeated when
// the connection is lost meanwhile; others are not, except inputs, whose sequence numbers make repeating harmless.

import type {
  Accepted,
  BlameLine,
  Graph,
  Handoff,
  InviteAsk,
  InviteMade,
  JournalPiece,
  Receipt,
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

  keys(names: string[]): Promise<Accepted> {
    return this.settled('keys', { keys: names }, names.length)
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
    return this.aboutTurn('request_turn', { message: cut(message) })
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
  handOffTurn(to: string, message = ''): Promise<TurnState> {
    return this.aboutTurn('hand_off_turn', { to, message: cut(message) })
  }
  revokeTurn(reason = ''): Promise<TurnState> {
    return this.aboutTurn('revoke_turn', { reason: cut(reason) })
  }
  setBlind(blind: boolean): Promise<TurnState> {
    return this.aboutTurn('set_blind', { blind })
  }

  private async aboutTurn<
    T extends
      | 'request_turn'
      | 'withdraw_turn'
      | 'grant_turn'
      | 'yield_turn'
      | 'hand_off_turn'
      | 'revoke_turn'
      | 'set_blind',
  >(tag: T, fields: About<T>): Promise<TurnState> {
    const shown = (await this.request(tag, fields)) as HostMessage<'turn_shown'>
    return this.setTurn(shown.turn, shown.yours)
  }

  async seize(options: { halt?: boolean; onlyActor?: string; reason?: string } = {}): Promise<Receipt> {
    const { halt = false, onlyActor = '', reason = '' } = options
    const { receipt } = await this.request('seize', { halt, only_actor: onlyActor, reason: cut(reason) })
    return receipt
  }

  async halt(options: { onlyActor?: string; reason?: string } = {}): Promise<Receipt> {
    const { onlyActor = '', reason = '' } = options
    return (await this.request('halt', { only_actor: onlyActor, reason: cut(reason) })).receipt
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
    const entries = readRecords(shown.records).map(({ seq, at, actor, kind, body }) => {
      return { seq, at, actor, kind, fields: body }
    })
    return { entries, more: shown.more, names: shown.names }
  }

  async blame(first = 1, last?: number): Promise<{ lines: BlameLine[]; total: number }> {
    const { lines, total } = await this.request('blame', { first, ...(last === undefined ? {} : { last }) })
    return { lines, total }
  }

  async graph(): Promise<Graph> {
    return (await this.request('graph', {})).graph
  }

  async screen(scrollback = false): Promise<ScreenText> {
    const { text, cursor_col, cursor_row, size, title, offset } = await this.request('screen', { scrollback })
    return { text, cursor_col, cursor_row, size, title, offset }
  }

  async refresh(): Promise<SessionInfo> {
    const { info } = await this.request('show', {})
    this.setInfo(info)
    return info
  }

  /** Connections to ports of the session's programs, over a channel of their own. */
  ports(): Promise<PortForwarder> {
    const session = this.info.peek()?.id ?? this.session
    return PortForwarder.make(this.machineLink, this.epochs, session)
  }

  // -- the rest ----------------------------------------------------------------------------------

  async signal(number: number): Promise<void> {
    await this.request('signal', { signal: number })
  }

  async end(): Promise<SessionInfo> {
    const { info } = await this.request('end', {})
    this.setInfo(info)
    return info
  }

  async invite(ask: InviteAsk): Promise<InviteMade> {
    const named = this.info.peek()?.id ?? this.session
    const made = await this.machineLink.ask('make_invite', {
      reach: ask.reach ?? [`session:${named}`],
      rights: ask.rights,
      expires_s: ask.expiresS,
      lasts_s: ask.lastsS,
      uses: ask.uses ?? 1,
      delegations: ask.delegations ?? 0,
    })
    return { link: made.link, invite: made.invite }
  }

  /** Through the session's own channel if there is one; requests that change nothing, otherwise through the host's. */
  private async request<T extends RequestTag>(tag: T, fields: About<T>): Promise<AnswerTo<T>> {
    const deadline = now() + BACK_S
    for (;;) {
      const about = {
        ...fields,
        session: this.info.peek()?.id ?? this.session,
      } as unknown as RequestFields<T>
      const at = this.link.peek().at
      try {
        if (this.attachment) return await this.attachment.connection.ask(tag, about)
        if (!goesBySession(tag) || at === 'fenced' || at === 'ended')
          return await this.machineLink.ask(tag, about)
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

function cut(text: string): string {
  return [...text].slice(0, TURN_TEXT_MAX_CHARS).join('')
}
