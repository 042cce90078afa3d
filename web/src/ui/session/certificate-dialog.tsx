// The continuity certificate of a session: what it says, and the file, which anybody can check without a host.

import { useEffect } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { now } from '../parts/clock'
import { copy } from '../parts/copy'
import { Dialog } from '../parts/dialog'
import { Icon } from '../parts/icon'
import { certificateOf, certifiedFacts } from '../text/certificate'
import { sanitize } from '../text/sanitize'
import type { SessionController } from './session-controller'
import { Facts } from './standstill-card'

interface Props {
  readonly controller: SessionController
  readonly onClose: () => void
}

export function CertificateDialog({ controller: { handle }, onClose }: Props) {
  const text = useSignal('')
  const failed = useSignal('')
  useEffect(() => {
    handle.certificate().then(
      (made) => (text.value = made),
      (error: Error) => (failed.value = error.message),
    )
  }, [handle])
  const certificate = certificateOf(text.value)
  const name = handle.info.value?.name ?? 'session'
  return (
    <Dialog title="Certificate of continuity" onClose={onClose} testid="certificate">
      {failed.value ? (
        <p class="tone-danger" role="alert">
          It could not be made: {sanitize(failed.value, 300)}.
        </p>
      ) : !text.value ? (
        <p class="faint">The host reads its record…</p>
      ) : (
        <div class="stack">
          {certificate && <Facts facts={certifiedFacts(certificate, now.value)} />}
          <div class="actions">
            <button
              class="button primary"
              data-testid="certificate-download"
              onClick={() => download(`${name}.certificate.json`, text.value)}
            >
              <Icon name="down" /> Download
            </button>
            <button class="button" onClick={() => void copy(text.value, 'Certificate copied')}>
              <Icon name="copy" /> Copy
            </button>
          </div>
          <p class="faint">
            This is what its host says. Anybody can check it, without a host:{' '}
            <code>hold certificate check FILE</code>
          </p>
        </div>
      )}
    </Dialog>
  )
}

function download(name: string, text: string): void {
  const address = URL.createObjectURL(new Blob([`${text}\n`], { type: 'application/json' }))
  const link = document.createElement('a')
  link.href = address
  link.download = name
  link.click()
  URL.revokeObjectURL(address)
}
