// What settles a need of a session without opening it: an answer, a secret, the turn given on, a resume. Each goes over a channel
// of its own, which ends with it. Nothing is attached, so nobody counts as present, and nothing counts as a look at what happened.

import type { Asked } from './api'
import { hex } from '../wire/bytes'
import { HoldError } from '../wire/errors'
import { random } from './device-keys'
import type { EpochStore } from './epoch-store'
import type { HostConnection } from './host-connection'
import type { MachineLink } from './machine-link'
import { sessionChannel } from './session-channel'

export class Errands {
  constructor(
    private readonly machine: MachineLink,
    private readonly epochs: EpochStore,
  ) {}

  /** Typed as this actor, with Enter. Sent once, and only while the same question is asked; else nothing is. */
  answer(asked: Asked, text: string): Promise<void> {
    const secret = asked.state === 'secret'
    return this.at(asked.id, async (connection) => {
      await this.checkAsked(connection, asked)
      await this.withTurn(connection, asked.id, async () => {
        // Again: whoever had to wait for the turn may find another question.
        await this.checkAsked(connection, asked)
        await connection.ask('submit', { session: asked.id, seq: 1, text, enter: true, secret })
      })
    })
  }

  giveTurn(session: string, to: string): Promise<void> {
    return this.at(session, async (connection) => {
      await connection.ask('grant_turn', { session, to })
    })
  }

  resume(session: string): Promise<void> {
    return this.at(session, async (connection) => {
      await connection.ask('resume', { session })
    })
  }

  private async at(session: string, deed: (connection: HostConnection) => Promise<void>): Promise<void> {
    const relay = await this.machine.throughRelay()
    const operator = hex(random(16))
    const connection = await sessionChannel(this.machine, relay, this.epochs, session, operator)
    try {
      await deed(connection)
    } finally {
      connection.close()
    }
  }

  private async checkAsked(connection: HostConnection, asked: Asked): Promise<void> {
    const { info } = await connection.ask('show', { session: asked.id })
    this.machine.sessions.shown(info)
    const same =
      info.state === asked.state &&
      !info.full_screen &&
      info.waiting_line === asked.waiting_line &&
      info.last_command?.seq === asked.last_command?.seq
    if (same) return
    throw new HoldError(
      'question_over',
      'it no longer asks that: nothing was sent',
      'look at what it asks now',
    )
  }

  /** The turn for as long as it takes; it is free again afterwards, unless this actor had it before. */
  private async withTurn(
    connection: HostConnection,
    session: string,
    deed: () => Promise<void>,
  ): Promise<void> {
    const before = await connection.ask('turn', { session })
    if (before.yours) return deed()
    const got = await connection.ask('request_turn', { session })
    if (!got.yours) {
      await connection.ask('withdraw_turn', { session }).catch(() => undefined)
      const holder = got.turn.holder_name || 'another'
      throw new HoldError(
        'turn_held',
        `${holder} holds the turn: nothing was sent`,
        'open the session to ask for the turn',
      )
    }
    try {
      await deed()
    } finally {
      await connection.ask('yield_turn', { session }).catch(() => undefined)
    }
  }
}
