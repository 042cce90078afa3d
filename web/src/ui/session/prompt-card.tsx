// A program waits for somebody: its prompt, and answers within reach. A secret has a field of its own: what
// is typed there is never shown, kept or put into the history of the page, it is sent only while the
// program still reads with echo off, and never a second time.

import { useEffect, useRef } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { Icon } from '../parts/icon'
import { toast } from '../parts/toast'
import { narrow, touch } from '../parts/viewport'
import { runningCommand } from '../text/running'
import { sanitize } from '../text/sanitize'
import type { SessionController } from './session-controller'
import { quickAnswers } from './quick-answers'

export function PromptCard({ controller }: { controller: SessionController }) {
  const info = controller.handle.info.value
  if (!info || controller.handle.link.value.at !== 'online') return null
  if (controller.handle.observing.value) return null
  if (info.state === 'secret') return <SecretEntry controller={controller} prompt={info.waiting_line} />
  // A full-screen program always reads keys, and asks nothing.
  if (info.state === 'input' && (info.full_screen || controller.fullScreen.value)) return null
  // At a prompt without a text there is nothing to answer that the terminal does not offer itself.
  if (info.state === 'input' && info.waiting_line.trim())
    return <Answers controller={controller} prompt={info.waiting_line} />
  return null
}

/** True when the turn is ours, or could be had at once. */
async function withTurn(controller: SessionController): Promise<boolean> {
  const turn = controller.handle.turn.value
  if (!turn || turn.yours || !turn.turn.holder) return true
  const got = await controller.act(controller.handle.requestTurn())
  if (got && !got.yours)
    controller.show(
      `${sanitize(got.turn.holder_name, 64)} holds the turn. You are in the queue; nothing was sent.`,
    )
  return got?.yours ?? false
}

const LINES_LOOKED_AT = 12 // more entries than a menu with buttons may have

/** What the terminal shows over the line that the cursor is on. */
function linesAbove(controller: SessionController): string[] {
  const screen = controller.screen
  if (!screen) return []
  const { baseY, cursorY } = screen.term.buffer.active
  const cursor = baseY + cursorY
  const count = Math.min(LINES_LOOKED_AT, cursor)
  return Array.from({ length: count }, (_, index) => screen.line(cursor - count + index))
}

/** On a phone the cursor's line rests on the dock: the question and its answers touch. */
function useResting(controller: SessionController, asked: boolean): void {
  useEffect(() => {
    if (!asked || !touch.value) return
    controller.lens?.rest(true)
    return () => controller.lens?.rest(false)
  }, [controller, asked])
}

function answerAs(controller: SessionController): string {
  const me = controller.handle.me.value
  return me ? `Your answer, as ${sanitize(me.name, 40)}` : 'Your answer'
}

function Answers({ controller, prompt }: { controller: SessionController; prompt: string }) {
  const text = useSignal('')
  const closed = useSignal('')
  const typing = useSignal(false)
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if (typing.value) field.current?.focus()
  }, [typing.value])
  const hidden = closed.value === prompt
  useResting(controller, !hidden)
  if (hidden) return null
  const info = controller.handle.info.value
  const command = (info && runningCommand(info)?.text) ?? ''
  // The question is in the terminal, directly above: said again only where a part of it is not seen there.
  const answers = quickAnswers(prompt, linesAbove(controller), command)
  const repeated = controller.lens?.lineCut.value ?? true
  const send = async (answer: string): Promise<void> => {
    if (await withTurn(controller)) await controller.act(controller.handle.submit(answer, true))
    text.value = ''
  }
  return (
    <section class="prompt-card" data-testid="prompt-card" aria-label="Waiting for input">
      <strong>{answerAs(controller)}</strong>
      <p class={`mono prompt-text ${repeated ? 'cut' : 'unseen'}`} data-testid="prompt-text">
        {sanitize(prompt, 300)}
      </p>
      <button class="icon-button small" aria-label="Hide" onClick={() => (closed.value = prompt)}>
        <Icon name="close" />
      </button>
      <div class="answers">
        {answers.map((answer) => (
          <button
            key={answer.testid}
            class="button"
            data-testid={answer.testid}
            onClick={() => void send(answer.text)}
          >
            {answer.label}
            {answer.hint && <span class="answer-hint">{answer.hint}</span>}
          </button>
        ))}
        {narrow.value && answers.length > 0 && !typing.value && (
          <button class="button" data-testid="prompt-type" onClick={() => (typing.value = true)}>
            Type…
          </button>
        )}
        <form
          class="answer-form"
          hidden={narrow.value && answers.length > 0 && !typing.value}
          onSubmit={(event) => {
            event.preventDefault()
            void send(text.value)
          }}
        >
          <input
            ref={field}
            class="mono"
            data-testid="prompt-input"
            aria-label="Another answer"
            placeholder="another answer"
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            value={text.value}
            onInput={(event) => (text.value = event.currentTarget.value)}
          />
          <button class="button" data-testid="prompt-send" disabled={text.value === ''}>
            Send
          </button>
        </form>
      </div>
    </section>
  )
}

function SecretEntry({ controller, prompt }: { controller: SessionController; prompt: string }) {
  const field = useRef<HTMLInputElement>(null)
  useResting(controller, true)
  const send = async (event: Event): Promise<void> => {
    event.preventDefault()
    const secret = field.current!.value
    field.current!.value = ''
    if (!(await withTurn(controller))) return
    // The program may have gone on while it was typed: then it would be shown on everybody's screen.
    if (controller.handle.link.value.at !== 'online') {
      toast('The connection was lost. Nothing was sent.', 'attention')
      return
    }
    if (controller.handle.info.value?.state !== 'secret') {
      toast('The program is no longer waiting for a secret. Nothing was sent.', 'attention')
      return
    }
    await controller.act(controller.handle.secret(secret))
  }
  return (
    <section class="prompt-card is-secret" data-testid="secret-card" aria-label="Waiting for a secret">
      <strong>
        <Icon name="key" /> Waiting for a secret
      </strong>
      <p class="mono prompt-text cut" data-testid="prompt-text">
        {sanitize(prompt, 300) || 'A program is reading with echo off.'}
      </p>
      {/* Not the state of a component: the field itself is the only place where it ever is. */}
      <form class="answer-form" onSubmit={send}>
        <input
          ref={field}
          type="password"
          data-testid="secret-input"
          aria-label="The secret"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
        />
        <button class="button primary" data-testid="secret-send">
          Send
        </button>
      </form>
      <small class="faint">Never shown, not even here. The journal records only its length.</small>
    </section>
  )
}
