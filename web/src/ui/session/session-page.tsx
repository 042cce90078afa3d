// One session: its terminal, whose turn it is, what happened, who is here.

import { useEffect, useMemo } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import type { Hold, Machine } from '../../hold/api'
import { useHold } from '../context'
import { ErrorPage } from '../pages/error-page'
import { ToastPlace } from '../parts/toast'
import { narrow } from '../parts/viewport'
import { harmless } from '../words/harmless'
import { needsSomebody, shownState, stateWords } from '../words/state'
import { Banner, EndedCard } from './banner'
import { CatchUpCard } from './catch-up-card'
import { Desk } from './desk'
import { FindBar } from './find-bar'
import { Foot } from './foot'
import { Head } from './head'
import { InviteDialog } from './invite-dialog'
import { KeyBar } from './key-bar'
import { Panel } from './panel'
import { PasteAsk, PasteProgress } from './paste'
import { PortView } from './port-view'
import { PromptCard } from './prompt-card'
import { ReceiptCard } from './receipt-card'
import { TerminalView } from './terminal-view'
import { TurnBar } from './turn-bar'

export function SessionPage({ machine: name, session }: { machine: string; session: string }) {
  const hold = useHold()
  const machine = find(hold.machines.value, name)
  if (machine)
    return <Opened key={`${machine.key}/${session}`} hold={hold} machine={machine} session={session} />
  if (!hold.ready.value) return <div class="page" />
  return <ErrorPage code="no_machine" about={`${session} on ${name}`} />
}

function find(machines: readonly Machine[], name: string): Machine | undefined {
  return machines.find((one) => one.name === name) ?? machines.find((one) => one.key === name)
}

function Opened({ hold, machine, session }: { hold: Hold; machine: Machine; session: string }) {
  const desk = useMemo(() => {
    const watchOnly = machine.rights.length > 0 && !machine.rights.includes('input')
    const opened = new Desk(hold.open(machine.key, session, { observe: watchOnly }))
    opened.panel.value = !narrow.value
    return opened
  }, [])
  useEffect(() => () => desk.close(), [desk])
  useTitle(desk, session)
  const link = desk.handle.link.value
  if (link.at === 'refused') {
    return (
      <ErrorPage code={link.trouble.code} trouble={link.trouble} about={`${session} on ${machine.name}`} />
    )
  }
  return <Live desk={desk} machine={machine} session={session} />
}

function useTitle(desk: Desk, session: string): void {
  const info = desk.handle.info.value
  const state = info ? shownState(info.state, info.lease) : null
  useEffect(() => {
    const name = info?.name ?? session
    document.title =
      state && needsSomebody(state) ? `${stateWords(state).word} · ${name}` : `${name} · holdfast`
  }, [info?.name, state])
}

function Live({ desk, machine, session }: { desk: Desk; machine: Machine; session: string }) {
  const { handle } = desk
  const inviting = useSignal(false)
  const turn = handle.turn.value
  const size = handle.operators.value?.size ?? handle.info.value?.size
  const link = handle.link.value
  return (
    <div
      class={`session-page ${desk.panel.value ? 'has-panel' : ''}`}
      data-testid="session"
      data-link={link.at}
      data-ready={desk.ready.value ? 'true' : 'false'}
      data-turn={turn?.yours ? 'mine' : turn?.turn.holder ? 'other' : 'free'}
      data-size={size ? `${size.cols}x${size.rows}` : ''}
    >
      <Head desk={desk} machine={machine} session={session} onInvite={() => (inviting.value = true)} />
      {link.at !== 'ended' && <TurnBar desk={desk} />}
      <div class="work">
        <main class="view">
          <Banner desk={desk} />
          <div class="pane-place">
            <TerminalView desk={desk} />
            {!desk.ready.value && link.at !== 'ended' && (
              <Waiting text={link.at === 'connecting' ? harmless(link.why) : ''} />
            )}
            {!desk.ready.value && link.at === 'ended' && <EndedCard desk={desk} />}
            {desk.finding.value && <FindBar desk={desk} />}
            <div class="overlays overlays-top">
              <CatchUpCard desk={desk} />
              <ReceiptCard desk={desk} />
            </div>
            <div class="overlays">
              {!narrow.value && <ToastPlace />}
              <PromptCard desk={desk} />
              <PasteProgress desk={desk} />
              {desk.hint.value && (
                <p class="hint" role="status" data-testid="typing-hint">
                  {desk.hint.value}
                </p>
              )}
            </div>
          </div>
          {(link.at !== 'ended' || desk.ready.value) && <Foot desk={desk} />}
          {narrow.value && link.at !== 'ended' && <KeyBar desk={desk} />}
        </main>
        {desk.panel.value && <Panel desk={desk} />}
      </div>
      {inviting.value && <InviteDialog desk={desk} onClose={() => (inviting.value = false)} />}
      <PasteAsk desk={desk} />
      <PortView desk={desk} machine={machine} />
    </div>
  )
}

function Waiting({ text }: { text: string }) {
  return (
    <div class="waiting" role="status">
      <span class="spinner" aria-hidden="true" />
      {text || 'Opening the session…'}
    </div>
  )
}
