// Asks for the permission to notify, once, by a click: never by itself. Where nobody can be notified, it says
// why, and what would change that.

import { useSignal } from '@preact/signals'
import { Coded } from './coded'
import { Dialog } from './dialog'
import { Icon } from './icon'
import { askPermission, permission, silence, type Silence } from './notify'
import { say } from './toast'

const TRUSTED =
  'With a certificate that it trusts, for a name of the machine, all of that works: ' +
  '`hold relay --cert FILE --key FILE`. So it does at 127.0.0.1.'
const WHY: Record<Exclude<Silence, ''>, [string, string]> = {
  insecure: [
    'This page came without TLS, so the browser allows no notifications, no installing, and no view of ports.',
    TRUSTED,
  ],
  untrusted: [
    'The browser does not trust the certificate of this relay by itself, so it allows no notifications, ' +
      'no installing, and no view of ports.',
    TRUSTED,
  ],
  missing: [
    'This browser has no notifications for a page in a tab.',
    'On an iPhone or iPad, add the page to the home screen and open it from there.',
  ],
  denied: [
    'Notifications from this page are switched off in the browser.',
    'Switch them on in its settings for this site.',
  ],
}

export function NotifyButton() {
  const open = useSignal(false)
  const why = silence.value
  if (!why && permission.value !== 'default') return null
  const ask = async (): Promise<void> => {
    await askPermission()
    if ((permission.value as string) === 'granted') {
      say('You will be told when a session waits for input, ends, or somebody asks for your turn', 'good')
    }
  }
  return (
    <>
      <button
        class={`icon-button ${why ? 'faint' : ''}`}
        data-testid="notify"
        data-why={why}
        aria-label={why ? 'Why nobody is notified' : 'Notify me'}
        title={why ? 'No notifications here: why' : 'Notify me when a session waits for input'}
        onClick={why ? () => (open.value = true) : ask}
      >
        <Icon name="bell" />
      </button>
      {open.value && why && (
        <Dialog title="No notifications here" onClose={() => (open.value = false)} testid="notify-why">
          <div class="stack">
            {WHY[why].map((text) => (
              <p key={text}>
                <Coded text={text} />
              </p>
            ))}
          </div>
        </Dialog>
      )}
    </>
  )
}
