// Creates an invite link: role, scope, duration; then the link and its QR code.

import { useMemo, useRef } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import type { InviteMade } from '../../hold/api'
import { copy } from '../parts/copy'
import { Dialog } from '../parts/dialog'
import { Icon } from '../parts/icon'
import { qrPath } from '../parts/qr'
import { toastError } from '../parts/toast'
import { span } from '../text/durations'
import type { SessionController } from './session-controller'

const ROLES: [string, string, string][] = [
  ['read', 'Watch', 'sees the session, cannot type'],
  ['execute', 'Work', 'can type while holding the turn'],
  ['admin', 'Everything', 'can also seize, halt, end and invite'],
]
const LASTS = [3600, 8 * 3600, 86400, 30 * 86400]
const GOOD_FOR_S = 3600

export function InviteDialog({
  controller,
  onClose,
}: {
  controller: SessionController
  onClose: () => void
}) {
  const role = useSignal('read')
  const everywhere = useSignal(false)
  const lasts = useSignal(8 * 3600)
  const busy = useSignal(false)
  const made = useSignal<InviteMade | null>(null)
  const name = controller.handle.info.value?.name ?? 'this session'
  const make = async (event: Event): Promise<void> => {
    event.preventDefault()
    busy.value = true
    try {
      const reach = everywhere.value ? { reach: [] } : {}
      made.value = await controller.handle.invite({
        ...reach,
        rights: [role.value],
        expires_s: GOOD_FOR_S,
        lasts_s: lasts.value,
      })
    } catch (error) {
      toastError(error)
    }
    busy.value = false
  }
  return (
    <Dialog title={`Invite to ${name}`} onClose={onClose} testid="invite-dialog">
      {made.value ? (
        <Made made={made.value} />
      ) : (
        <form class="stack" onSubmit={make}>
          <fieldset class="choices">
            <legend>Access for whoever opens the link</legend>
            {ROLES.map(([value, word, means]) => (
              <label key={value} class="choice">
                <input
                  type="radio"
                  name="role"
                  value={value}
                  checked={role.value === value}
                  onChange={() => (role.value = value)}
                />
                <span>
                  <strong>{word}</strong> <span class="faint">{means}</span>
                </span>
              </label>
            ))}
          </fieldset>
          <label class="field">
            <span>Where</span>
            <select
              value={everywhere.value ? 'all' : 'one'}
              onChange={(event) => (everywhere.value = event.currentTarget.value === 'all')}
            >
              <option value="one">this session only</option>
              <option value="all">every session of the machine</option>
            </select>
          </label>
          <label class="field">
            <span>For how long</span>
            <select
              value={lasts.value}
              onChange={(event) => (lasts.value = Number(event.currentTarget.value))}
            >
              {LASTS.map((seconds) => (
                <option key={seconds} value={seconds}>
                  {span(seconds)}
                </option>
              ))}
            </select>
          </label>
          <div class="dialog-foot end row">
            <span class="faint grow">The link works once, within {span(GOOD_FOR_S)}.</span>
            <button class="button primary" data-testid="invite-make" disabled={busy.value}>
              Create link
            </button>
          </div>
        </form>
      )}
    </Dialog>
  )
}

function Made({ made }: { made: InviteMade }) {
  const code = useMemo(() => qrPath(made.link), [made.link])
  const field = useRef<HTMLInputElement>(null)
  const copyLink = async (): Promise<void> => {
    if (!(await copy(made.link, 'Link copied', ': copy it by hand'))) field.current?.select()
  }
  return (
    <div class="stack">
      <svg
        class="qr"
        data-testid="invite-qr"
        role="img"
        aria-label="QR code of the link"
        viewBox={`0 0 ${code.size} ${code.size}`}
        shape-rendering="crispEdges"
      >
        <rect width={code.size} height={code.size} fill="#fff" />
        <path d={code.path} fill="#000" />
      </svg>
      <div class="inline-form">
        <input
          ref={field}
          class="mono grow"
          readOnly
          data-testid="invite-link"
          aria-label="The link"
          value={made.link}
          onFocus={(e) => e.currentTarget.select()}
        />
        <button class="button" type="button" onClick={() => void copyLink()}>
          <Icon name="copy" /> Copy
        </button>
        {'share' in navigator && (
          <button class="button" type="button" onClick={() => void share(made.link)}>
            Share…
          </button>
        )}
      </div>
      <p class="faint">
        Anyone who has the link can use it, so send it over a channel you trust. It works once, within{' '}
        {span(GOOD_FOR_S)}, and cannot be shown again.
      </p>
    </div>
  )
}

async function share(url: string): Promise<void> {
  try {
    await navigator.share({ url })
  } catch {
    // Closed without a choice: the link is still here.
  }
}
