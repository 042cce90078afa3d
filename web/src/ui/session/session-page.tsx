// The page of one session: one bar, the frame with state line and terminal, the panel beside it.

import { useEffect, useMemo } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import type { Hold, LinkState, Machine, SessionCard, SessionHandle } from '../../hold/api'
import { useHold } from '../context'
import { ErrorPage } from '../pages/error-page'
import { now } from '../parts/clock'
import { narrow, touch } from '../parts/viewport'
import { type Hue, hueOf } from '../text/actor-colour'
import { age } from '../text/durations'
import { sanitize } from '../text/sanitize'
import { movingOf } from '../text/moving'
import { isAsleep, needsInput, restsOrOver, shownState, stateText } from '../text/session-state'
import { Banner, EndedCard, isLost } from './banner'
import { SessionController } from './session-controller'
import { FindBar } from './find-bar'
import { Footer } from './footer'
import { Header } from './header'
import { HeldCard } from './held-card'
import { InviteDialog } from './invite-dialog'
import { KeyBar } from './key-bar'
import { MoveCard } from './move-card'
import { Panel } from './panel'
import { PasteDialog, PasteProgress, PasteSheet } from './paste-dialog'
import { PortView } from './port-view'
import { PromptCard } from './prompt-card'
import { LinkBar, SelectionBar } from './terminal-bars'
import { StandstillCard } from './standstill-card'
import { TerminalView } from './terminal-view'
import { TurnBar } from './turn-bar'

export function SessionPage({ machine: name, session }: { machine: string; session: string }) {
  const hold = useHold()
  const machine = find(hold.machines.value, name)
  const lives = useSignal(0) // of the session, that this page has followed
  if (machine)
    return (
      <Opened
        key={`${machine.key}/${session}/${lives.value}`}
        hold={hold}
        machine={machine}
        session={session}
        followed={lives.value > 0}
        onBack={() => lives.value++}
      />
    )
  if (!hold.ready.value) return <div class="page" />
  return <ErrorPage code="no_machine" about={`${session} on ${name}`} />
}

function find(machines: readonly Machine[], name: string): Machine | undefined {
  return machines.find((one) => one.name === name) ?? machines.find((one) => one.key === name)
}

interface OpenedProps {
  readonly hold: Hold
  readonly machine: Machine
  readonly session: string
  readonly followed: boolean
  readonly onBack: () => void
}

function Opened({ hold, machine, session, followed, onBack }: OpenedProps) {
  const controller = useMemo(() => {
    const watchOnly = machine.rights.length > 0 && !machine.rights.includes('input')
    const opened = new SessionController(hold.open(machine.key, session, { observe: watchOnly }), followed)
    opened.panel.value = !narrow.value && !touch.value
    return opened
  }, [])
  useEffect(() => () => controller.close(), [controller])
  useTitle(controller, session)
  const back = isBack(controller.handle, hold.sessions.value)
  useEffect(() => {
    if (back) onBack()
  }, [back])
  const link = controller.handle.link.value
  if (link.at === 'refused') {
    return (
      <ErrorPage code={link.trouble.code} trouble={link.trouble} about={`${session} on ${machine.name}`} />
    )
  }
  return <Live controller={controller} machine={machine} session={session} />
}

/** It was asleep or lost, and runs again in a later epoch, whoever brought it back. */
function isBack({ machine, link, info }: SessionHandle, cards: readonly SessionCard[]): boolean {
  const last = info.value
  if (link.value.at !== 'ended' || !last) return false
  return cards.some(
    (card) =>
      card.machine === machine &&
      card.info.id === last.id &&
      card.info.epoch > last.epoch &&
      !restsOrOver(card.info.state),
  )
}

function useTitle(controller: SessionController, session: string): void {
  const info = controller.handle.info.value
  const state = info ? shownState(info.state, info.lease, info.full_screen) : null
  useEffect(() => {
    const name = info?.name ?? session
    document.title = state && needsInput(state) ? `${stateText(state).word} · ${name}` : `${name} · holdfast`
  }, [info?.name, state])
}

function Live({
  controller,
  machine,
  session,
}: {
  controller: SessionController
  machine: Machine
  session: string
}) {
  const { handle } = controller
  const inviting = useSignal(false)
  const turn = handle.turn.value
  const size = handle.operators.value?.size ?? handle.info.value?.size
  const link = handle.link.value
  return (
    <div
      class={`session-page ${controller.panel.value ? 'has-panel' : ''}`}
      data-testid="session"
      data-link={link.at}
      data-ready={controller.ready.value ? 'true' : 'false'}
      data-turn={turn?.yours ? 'mine' : turn?.turn.holder ? 'other' : 'free'}
      data-size={size ? `${size.cols}x${size.rows}` : ''}
    >
      <Header
        controller={controller}
        machine={machine}
        session={session}
        onInvite={() => (inviting.value = true)}
      />
      <div class="work">
        <main
          class={`view grow ${standsStill(controller) ? 'is-still' : ''} ${movingOf(handle.info.value) ? 'is-moving' : ''}`}
          style={{ ...writerHue(controller) }}
        >
          <TurnBar controller={controller} machine={machine.name} />
          <Banner controller={controller} machine={machine.name} />
          <MoveCard controller={controller} machine={machine.name} />
          <div class="pane-place">
            <TerminalView controller={controller} />
            {!controller.ready.value && link.at !== 'ended' && <Waiting machine={machine.name} link={link} />}
            {!controller.ready.value && link.at === 'ended' && (
              <EndedCard controller={controller} machine={machine.name} />
            )}
            {controller.finding.value && <FindBar controller={controller} />}
            <div class="dock">
              <StandstillCard controller={controller} machine={machine.name} />
              <LinkBar controller={controller} />
              <SelectionBar controller={controller} />
              <HeldCard controller={controller} />
              <PromptCard controller={controller} />
              <PasteProgress controller={controller} />
              {controller.hint.value && (
                <p class="hint" role="status" data-testid="typing-hint">
                  {controller.hint.value}
                </p>
              )}
            </div>
          </div>
          {(link.at !== 'ended' || controller.ready.value) && <Footer controller={controller} />}
          {touch.value && link.at !== 'ended' && <KeyBar controller={controller} />}
        </main>
        {controller.panel.value && <Panel controller={controller} machine={machine.name} />}
      </div>
      {inviting.value && <InviteDialog controller={controller} onClose={() => (inviting.value = false)} />}
      <PasteDialog controller={controller} />
      <PasteSheet controller={controller} />
      <PortView controller={controller} machine={machine} />
    </div>
  )
}

/** Nothing in it runs, and nothing will by itself, or not for now: its terminal is hatched. */
function standsStill({ handle }: SessionController): boolean {
  const link = handle.link.value
  if (link.at === 'ended') return isLost(link.ending) || isAsleep(link.ending) || !!link.ending?.moved_to
  return link.at === 'fenced' || (link.at === 'online' && handle.info.value?.state === 'halted')
}

/** The frame's upper edge has the hue of whoever writes. */
function writerHue({ handle }: SessionController): Hue | undefined {
  const turn = handle.turn.value?.turn
  if (!turn?.holder || handle.link.value.at !== 'online') return undefined
  const actor = handle.actors.value.find(({ id }) => id === turn.holder)
  return hueOf(actor?.colour, turn.holder)
}

const SLOW_S = 3 // to open: from then on it is said how long it takes

function Waiting({ machine, link }: { machine: string; link: LinkState }) {
  const since = link.at === 'connecting' ? now.value - link.since : 0
  const slow = since > SLOW_S ? `${sanitize(machine, 64)} has not answered for ${age(since)}` : ''
  return (
    <div class="waiting" role="status">
      <span class="spinner" aria-hidden="true" />
      {link.at === 'offline' ? 'Trying again…' : slow || 'Opening the session…'}
    </div>
  )
}
