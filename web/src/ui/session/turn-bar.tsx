// The state line of a session, and the actions on it: the turn, and halting.

import { useLayoutEffect, useRef } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import type { Actor, TurnInfo } from '../../hold/api'
import { ActorName } from '../parts/labels'
import { HoldButton } from '../parts/hold-button'
import { Icon } from '../parts/icon'
import { narrow, sideways } from '../parts/viewport'
import { may as mayWith } from '../text/rights'
import { AskSheet } from './ask-sheet'
import { GiveTurn } from './inbox'
import { SaidState, StateLine } from './state-line'
import type { SessionController } from './session-controller'

export function TurnBar({ controller, machine }: { controller: SessionController; machine: string }) {
  const { handle } = controller
  const state = handle.turn.value
  const link = handle.link.value.at
  const may = (right: string): boolean => mayWith(handle.rights.value, right)
  const mayWrite = may('turn.request') && may('input') && !handle.observing.value
  const whose = state?.yours ? 'mine' : state?.turn.holder ? 'other' : 'free'
  const live = link === 'online'
  // The button that was pressed may be gone by what it did: who uses a keyboard stays in the bar.
  const bar = useRef<HTMLDivElement>(null)
  const focused = useRef<Element | null>(null)
  useLayoutEffect(() => {
    if (!focused.current || focused.current.isConnected) return
    focused.current = null
    if (document.activeElement === document.body) bar.current?.querySelector('button')?.focus()
  })
  const halted = handle.info.value?.state === 'halted'
  const sheet = short() && whose === 'other' && (mayWrite || may('seize'))
  return (
    <div
      ref={bar}
      class={`turn-bar turn-${whose} row`}
      role="group"
      aria-label="State and turn"
      onFocusIn={(event) => (focused.current = event.target as Element)}
    >
      <StateLine controller={controller} machine={machine} />
      <SaidState controller={controller} machine={machine} />
      {link !== 'ended' && (
        <span class="turn-acts">
          {sheet && (
            <AskButton controller={controller} mayAsk={mayWrite} maySeize={may('seize')} live={live} />
          )}
          {!sheet && state && !state.yours && mayWrite && !state.waiting && (
            <button
              class={`button small ${whose === 'free' ? '' : 'primary'}`}
              data-testid="turn-request"
              disabled={!live}
              onClick={() => void controller.act(handle.requestTurn())}
            >
              {askWord(whose)}
            </button>
          )}
          {!sheet && state?.waiting && (
            <button
              class="button small"
              data-testid="turn-withdraw"
              onClick={() => void controller.act(handle.withdrawTurn())}
            >
              {short() ? 'Withdraw' : 'Waiting · withdraw'}
            </button>
          )}
          {state?.yours && (
            <>
              <HandOff controller={controller} may={may('turn.grant')} live={live} />
              {!short() && (
                <button
                  class="button small"
                  data-testid="turn-yield"
                  disabled={!live}
                  onClick={() => void controller.act(handle.yieldTurn())}
                >
                  Yield
                </button>
              )}
            </>
          )}
          {!sheet && whose === 'other' && may('seize') && (
            <HoldButton
              class="small danger"
              testid="turn-seize"
              label="Seize the turn"
              disabled={!live}
              onHeld={() => void controller.seize(false)}
            >
              <Icon name="hand" /> Seize
            </HoldButton>
          )}
          {may('halt') && !halted && link !== 'fenced' && (
            <button
              class="button small"
              data-testid="session-halt"
              disabled={!live}
              title="Freeze every process of the session"
              aria-label="Halt"
              onClick={() => void controller.halt()}
            >
              <Icon name="halt" /> <span>Halt</span>
            </button>
          )}
          {may('halt') && halted && link !== 'fenced' && (
            <button
              class="button small primary"
              data-testid="session-resume"
              disabled={!live}
              onClick={() => void controller.resume()}
            >
              <Icon name="play" /> Resume
            </button>
          )}
        </span>
      )}
      {state?.yours && state.turn.queue.length > 0 && <Queue controller={controller} turn={state.turn} />}
    </div>
  )
}

/** One button where there is no room for three; the sheet that it opens has the others. */
function AskButton({
  controller,
  mayAsk,
  maySeize,
  live,
}: {
  controller: SessionController
  mayAsk: boolean
  maySeize: boolean
  live: boolean
}) {
  const open = useSignal(false)
  const waiting = controller.handle.turn.value?.waiting ?? false
  const halted = controller.handle.info.value?.state === 'halted' // then to resume it is the main thing
  return (
    <>
      <button
        class={`button small ${waiting || halted ? '' : 'primary'}`}
        data-testid="turn-ask"
        disabled={!live}
        onClick={() => (open.value = true)}
      >
        {waiting ? 'Asked' : mayAsk ? 'Ask' : 'Seize'}…
      </button>
      {open.value && (
        <AskSheet
          controller={controller}
          mayAsk={mayAsk}
          maySeize={maySeize}
          onClose={() => (open.value = false)}
        />
      )}
    </>
  )
}

/** Whether there is room for one word on a button. */
function short(): boolean {
  return narrow.value || sideways.value
}

function askWord(whose: string): string {
  if (short()) return whose === 'free' ? 'Take' : 'Ask'
  return whose === 'free' ? 'Take the turn' : 'Ask for the turn'
}

/** Requests for the turn, shown to its holder. */
function Queue({ controller, turn }: { controller: SessionController; turn: TurnInfo }) {
  const asks = turn.queue[0]!
  const asker = controller.handle.actors.value.find((one) => one.id === asks.actor)
  const more = turn.queue.length - 1
  return (
    <span class="turn-queue row" role="alert">
      <ActorName name={asks.name} id={asks.actor} actor={asker} kind="" />
      <span class="turn-asks grow cut">
        asks for the turn{asks.message && `: “${asks.message}”`}
        {more > 0 && <span class="faint"> and {more} more</span>}
      </span>
      <GiveTurn controller={controller} asks={asks} />
    </span>
  )
}

/** To somebody; and, where there is room for one button only, to nobody in particular. */
function HandOff({ controller, may, live }: { controller: SessionController; may: boolean; live: boolean }) {
  const open = useSignal(false)
  const mine = controller.handle.turn.value?.turn.holder
  const known = controller.handle.actors.value.filter((one) => one.id !== mine && one.revoked_at === null)
  const others = may ? known : []
  if (!short() && others.length === 0) return null
  const give = (actor: Actor): void => {
    open.value = false
    void controller.act(controller.handle.handOffTurn(actor.id))
  }
  return (
    <span class="menu-place">
      <button
        class="button small"
        data-testid="turn-give"
        disabled={!live}
        aria-expanded={open.value}
        onClick={() => (open.value = !open.value)}
      >
        {short() ? 'Give…' : 'Hand to…'}
      </button>
      {open.value && (
        <span class="menu" role="menu" onKeyDown={(event) => event.key === 'Escape' && (open.value = false)}>
          {short() && (
            <button
              role="menuitem"
              data-testid="turn-yield"
              onClick={() => {
                open.value = false
                void controller.act(controller.handle.yieldTurn())
              }}
            >
              Yield to whoever asks next
            </button>
          )}
          {others.slice(0, 20).map((actor) => (
            <button key={actor.id} role="menuitem" onClick={() => give(actor)}>
              <ActorName name={actor.name} actor={actor} />
            </button>
          ))}
        </span>
      )}
    </span>
  )
}
