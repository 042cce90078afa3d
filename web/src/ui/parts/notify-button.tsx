// Asks for the permission to notify, once, by a click: never by itself. Where nobody can be notified, it says
// why, and what would change that.

import { useSignal } from '@preact/signals'
import { InlineCode } from './inline-code'
import { Dialog } from './dialog'
import { Icon } from './icon'
import { askPermission, permission, silence, type Silence } from './notify'
import { toast } from './toast'

const TRUSTED =
  'With a certificate that it trusts, issued for a name of the machine, all of these work: ' +
  '`hold relay --cert FILE --key FILE`. They also work at 127.0.0.1.'
const WHY: Record<Exclude<Silence, ''>, [string, string]> = {
  insecure: [
    'This page was loaded without TLS, so the browser allows no notifications, no installation and no port views.',
    TRUSTED,
  ],
  untrusted: [
    'The browser does not trust the certificate of this relay, so it allows no notifications, ' +
      'no installation and no port views.',
    TRUSTED,
  ],
  missing: [
    'This browser does not support notifications from a tab.',
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
      toast(
        'You will be notified when a session waits for input, ends, or someone asks for your turn',
        'good',
      )
    }
  }
  return (
    <>
      <button
        class={`icon-button ${why ? 'faint' : ''}`}
        data-testid="notify"
        data-why={why}
        aria-label={why ? 'Why notifications are unavailable' : 'Notify me'}
        title={why ? 'Notifications are unavailable' : 'Notify me when a session waits for input'}
        onClick={why ? () => (open.value = true) : ask}
      >
        <Icon name="bell" />
      </button>
      {open.value && why && (
        <Dialog
          title="Notifications are unavailable"
          onClose={() => (open.value = false)}
          testid="notify-why"
        >
          <div class="stack">
            {WHY[why].map((text) => (
              <p key={text}>
                <InlineCode text={text} />
              </p>
            ))}
          </div>
        </Dialog>
      )}
    </>
  )
}
