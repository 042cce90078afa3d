// The page of an opened invite link: who invites to what, a name for this device, and Join.
//
// The secret of the link is in the fragment, which browsers send to nobody; link.ts takes it out of the address.

import { useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { Hold, Invitation, InvitePreview, JoinFailure, JoinOutcome, Trouble } from '../../hold/api'
import { useHold } from '../context'
import { ErrorPage } from '../pages/error-page'
import { now } from '../parts/clock'
import { Icon } from '../parts/icon'
import { toast } from '../parts/toast'
import { NoticePage } from '../parts/top-bar'
import { go } from '../route'
import { sanitize } from '../text/sanitize'
import { clock, span } from '../text/durations'
import { canAndCannot, reachLine, rightsLine, roleOf } from '../text/rights'
import { isName, suggestedName, tidyName } from './device-name'
import { onLink, takeLink } from './link-in-address'

type Looked = { readonly link: string; readonly preview: InvitePreview } | { readonly trouble: Trouble }

export function JoinPage() {
  const hold = useHold()
  const first = useMemo(() => look(hold, takeLink() ?? location.href), [])
  const opened = useSignal(first)
  useEffect(() => {
    document.title = 'Invite · holdfast'
    return onLink((link) => (opened.value = look(hold, link)))
  }, [])
  const looked = opened.value
  if ('trouble' in looked) {
    return (
      <div data-testid="join-error" data-code="bad_link">
        <ErrorPage code={looked.trouble.code || 'bad_link'} trouble={looked.trouble} />
      </div>
    )
  }
  return <Asking key={looked.link} {...looked} />
}

/** The machine says who invites to what; only then there is something to agree to. */
function Asking({ link, preview }: { link: string; preview: InvitePreview }) {
  const hold = useHold()
  const answer = useSignal<Awaited<ReturnType<Hold['see']>> | null>(null)
  const ask = async (): Promise<void> => {
    answer.value = null
    answer.value = await hold.see(link)
  }
  useEffect(() => void ask(), [])
  if (answer.value === null) {
    return (
      <NoticePage testid="join-asking">
        <p role="status">Asking the machine what this link is for…</p>
      </NoticePage>
    )
  }
  if (!answer.value.ok) return <NotIn {...answer.value} again={() => void ask()} />
  return <JoinForm link={link} preview={preview} seen={answer.value.seen} />
}

function NotIn({ reason, trouble, again }: JoinFailure & { again: () => void }) {
  return (
    <div data-testid="join-error" data-code={reason}>
      <ErrorPage code={reason} trouble={trouble}>
        {(reason === 'unreachable' || trouble.retryable) && (
          <button class="button primary" data-testid="error-action" onClick={again}>
            Try again
          </button>
        )}
      </ErrorPage>
    </div>
  )
}

function look(hold: Hold, link: string): Looked {
  try {
    return { link, preview: hold.preview(link) }
  } catch (error) {
    return { trouble: error as Trouble }
  }
}

function JoinForm({ link, preview, seen }: { link: string; preview: InvitePreview; seen: Invitation }) {
  const hold = useHold()
  const name = useSignal(suggestedName(navigator.userAgent))
  const busy = useSignal(false)
  const failed = useSignal<JoinFailure | null>(null)
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    busy.value = true
    const outcome = await hold.join(link, tidyName(name.value))
    busy.value = false
    if (outcome.ok) arrive(outcome.joined)
    else failed.value = outcome
  }
  const arrive = (joined: Extract<JoinOutcome, { ok: true }>['joined']): void => {
    const machine = hold.machines.value.find((one) => one.key === joined.machine)
    toast(
      `Joined as ${joined.actor}: ${rightsLine(joined.rights)}; ${reachLine(joined.reach.join('/'))}`,
      'good',
    )
    if (joined.session && machine) {
      const card = hold.sessions.value.find((one) => one.info.id === joined.session)
      go({ page: 'session', machine: machine.name, session: card?.info.name ?? joined.session }, true)
    } else go({ page: 'overview' }, true)
  }
  if (failed.value) return <NotIn {...failed.value} again={() => (failed.value = null)} />
  const tidy = tidyName(name.value)
  return (
    <NoticePage testid="join">
      <h1>
        <strong>{sanitize(seen.inviter)}</strong> invites you to <strong>{sanitize(placeOf(seen))}</strong>
      </h1>
      <div data-testid="join-what">
        <p class="soft">on {sanitize(seen.host_name)}</p>
        <p class="faint">This device will be able to</p>
        <Abilities rights={seen.rights} />
        <dl class="facts">
          <dt>Role</dt>
          <dd>{roleOf(seen.rights) ?? 'a mix of rights'}</dd>
          <dt>For</dt>
          <dd>{span(seen.lasts_s)} from when you join, or until it is revoked</dd>
          <dt>Link</dt>
          <dd>
            {seen.uses_left === 1 ? 'works once' : `for ${seen.uses_left} devices`}, until{' '}
            {clock(seen.expires_at, now.value)}
          </dd>
        </dl>
        {preview.known && (
          <p class="aside">
            This device already has access to this machine, as <strong>{sanitize(preview.known.name)}</strong>
            . Joining again replaces that access.
          </p>
        )}
      </div>
      <form class="stack" onSubmit={submit}>
        <label class="field">
          <span>Name of this device</span>
          <input
            data-testid="join-name"
            value={name.value}
            maxLength={64}
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            aria-invalid={!isName(tidy)}
            onInput={(event) => (name.value = event.currentTarget.value)}
          />
          <small class="faint">
            Everyone in a session sees this name next to what you do. Letters, digits, . _ and -
          </small>
        </label>
        <div class="actions">
          <button class="button primary big" data-testid="join-submit" disabled={busy.value || !isName(tidy)}>
            {busy.value ? 'Joining…' : `Join as ${tidy}`}
          </button>
        </div>
      </form>
      <p class="faint">
        {hold.keys === 'webcrypto'
          ? 'A key is created for this device. It cannot be exported from this browser.'
          : 'A key is created for this device and stored in this browser. This page was loaded over plain http, so the browser cannot protect the key: use it only on networks you trust.'}{' '}
        The machine proved that it has the key <code class="mono">{keyStart(preview.hostKey)}</code>. The
        relay, {sanitize(preview.relay)}, cannot read what you see or type.
      </p>
    </NoticePage>
  )
}

function Abilities({ rights }: { rights: readonly string[] }) {
  const { can, cannot } = canAndCannot(rights)
  return (
    <ul class="abilities">
      {can.map((line) => (
        <li key={line}>
          <Icon name="check" /> {line}
        </li>
      ))}
      {cannot.length > 0 && (
        <li class="soft">
          <Icon name="close" /> not {cannot.join(', ')}
        </li>
      )}
    </ul>
  )
}

/** `the session deploy`, `every session of this machine`. */
function placeOf(seen: Invitation): string {
  const session = seen.reach.find((step) => step.startsWith('session:'))?.slice('session:'.length)
  const name = session === undefined ? undefined : seen.names[session]
  return name === undefined ? reachLine(seen.reach.join('/')) : name
}

function keyStart(key: string): string {
  return (key.slice(0, 16).match(/.{4}/g) ?? []).join(' ')
}
