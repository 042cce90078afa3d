// The page of an opened invite link: what it is for, a name for this device, and Join.
//
// The secret of the link is in the fragment, which browsers send to nobody; link.ts takes it out of the address.

import { useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { Hold, InviteOffer, InvitePreview, JoinOutcome, Trouble } from '../../hold/api'
import { useHold } from '../context'
import { ErrorPage } from '../pages/error-page'
import { Icon } from '../parts/icon'
import { toast } from '../parts/toast'
import { NoticePage } from '../parts/top-bar'
import { go } from '../route'
import { sanitize } from '../text/sanitize'
import { reachLine, rightsLine } from '../text/rights'
import { isName, suggestedName, tidyName } from './device-name'
import { onLink, takeLink } from './link-in-address'
import { offerText } from './offer'

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
  return <JoinForm key={looked.link} {...looked} />
}

function look(hold: Hold, link: string): Looked {
  try {
    return { link, preview: hold.preview(link) }
  } catch (error) {
    return { trouble: error as Trouble }
  }
}

const FINAL = new Set(['expired', 'used', 'invalid', 'wrong_relay'])

/** As the host said it, over a channel that only it and this device can read. */
function Offer({ offer }: { offer: InviteOffer | 'asking' | 'unknown' }) {
  if (typeof offer === 'string') {
    return (
      <>
        <h1>You are invited to a machine</h1>
        <p role="status">
          {offer === 'asking'
            ? 'Asking the machine what the link gives…'
            : 'The machine did not say what the link gives. That is shown after you join.'}
        </p>
      </>
    )
  }
  const said = offerText(offer)
  return (
    <section class="offer" data-testid="join-offer">
      <h1>{sanitize(said.title, 160)}</h1>
      <p class="faint">{sanitize(said.where, 80)}</p>
      <p>This device will be able to</p>
      <ul class="can">
        {said.may.map((word) => (
          <li key={word}>
            <Icon name="check" /> {word}
          </li>
        ))}
        {said.mayNot && (
          <li class="faint">
            <Icon name="close" /> {said.mayNot}
          </li>
        )}
      </ul>
      <dl class="facts">
        <dt>access</dt>
        <dd>{said.lasts}</dd>
        <dt>link</dt>
        <dd>{said.link}</dd>
      </dl>
    </section>
  )
}

function JoinForm({ link, preview }: { link: string; preview: InvitePreview }) {
  const hold = useHold()
  const name = useSignal(suggestedName(navigator.userAgent))
  const busy = useSignal(false)
  const failed = useSignal<Extract<JoinOutcome, { ok: false }> | null>(null)
  const offer = useSignal<InviteOffer | 'asking' | 'unknown'>('asking')
  useEffect(() => {
    let left = false
    void hold.offer(link).then((outcome) => {
      if (left) return
      if (outcome.ok) offer.value = outcome.offer
      else if (FINAL.has(outcome.reason)) failed.value = outcome
      else offer.value = 'unknown' // joining says more, and may still work
    })
    return () => {
      left = true
    }
  }, [])
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
  if (failed.value) {
    const { reason, trouble } = failed.value
    return (
      <div data-testid="join-error" data-code={reason}>
        <ErrorPage code={reason} trouble={trouble}>
          {(reason === 'unreachable' || trouble.retryable) && (
            <button class="button primary" data-testid="error-action" onClick={() => (failed.value = null)}>
              Try again
            </button>
          )}
        </ErrorPage>
      </div>
    )
  }
  const tidy = tidyName(name.value)
  return (
    <NoticePage testid="join">
      <Offer offer={offer.value} />
      <div data-testid="join-what">
        <dl class="facts">
          <dt>relay</dt>
          <dd class="mono">{sanitize(preview.relay)}</dd>
          <dt>host key</dt>
          <dd class="mono wrap">{preview.hostKey}</dd>
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
            {busy.value ? 'Joining…' : 'Join'}
          </button>
        </div>
      </form>
      <p class="faint">
        {hold.keys === 'webcrypto'
          ? 'A key is created for this device. It cannot be exported from this browser.'
          : 'A key is created for this device and stored in this browser. This page was loaded over plain http, so the browser cannot protect the key: use it only on networks you trust.'}
      </p>
    </NoticePage>
  )
}
