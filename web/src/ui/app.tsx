// The app: which page is shown, and what runs beside all of them.

import { render } from 'preact'
import type { ApprovalCard, Hold, SessionCard } from '../hold/api'
import { ApprovalPage } from './approval/approval-page'
import { HoldContext } from './context'
import { JoinPage } from './join/join-page'
import { Overview } from './overview/overview'
import { ErrorPage } from './pages/error-page'
import { approvalNotices, noticesFor } from './parts/notify-rules'
import { startClock } from './parts/clock'
import { notifyOutside, startNotices, untrusted } from './parts/notify'
import { startTheme } from './parts/theme'
import { Toasts } from './parts/toast'
import { startViewport, touch } from './parts/viewport'
import { follow, go, parse, route } from './route'
import { ScorePage } from './score/score-page'
import { SessionPage } from './session/session-page'
import { styleThroughObjects } from './terminal/strict-style'

function Page() {
  const at = route.value
  switch (at.page) {
    case 'overview':
      return <Overview />
    case 'approval':
      return <ApprovalPage machine={at.machine} approval={at.approval} />
    case 'score':
      return <ScorePage machine={at.machine} actor={at.actor} />
    case 'join':
      return <JoinPage />
    case 'session':
      return <SessionPage machine={at.machine} session={at.session} />
    case 'lost':
      return <ErrorPage code="lost" about={at.path} />
  }
}

function App({ hold }: { hold: Hold }) {
  const name = route.value.page === 'lost' ? 'error' : route.value.page
  return (
    <HoldContext.Provider value={hold}>
      <div class="app" data-testid="app" data-route={name}>
        <Page />
        <Toasts />
      </div>
    </HoldContext.Provider>
  )
}

export function mount(hold: Hold, place: HTMLElement): void {
  styleThroughObjects()
  startTheme()
  startViewport()
  startClock()
  startNotices()
  follow()
  watch(hold)
  startWorker()
  render(<App hold={hold} />, place)
}

/** Notifies about changes in all sessions, including those that are not open. */
function watch(hold: Hold): void {
  let before: readonly SessionCard[] = []
  hold.sessions.subscribe((after) => {
    for (const notice of noticesFor(before, after, hold.machines.peek())) void notifyOutside(notice)
    before = after
  })
  let waited: readonly ApprovalCard[] = []
  hold.approvals.subscribe((waits) => {
    for (const notice of approvalNotices(waited, waits, hold.machines.peek())) void notifyOutside(notice)
    waited = waits
  })
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) hold.refresh()
  })
}

function startWorker(): void {
  if (!('serviceWorker' in navigator)) return
  // Behind a certificate that only its user trusts there is none. A desktop notifies without it.
  navigator.serviceWorker.register('/sw.js').catch(() => (untrusted.value = touch.value))
  // A click on a notice: the worker brings the page to the front and says where to go.
  navigator.serviceWorker.addEventListener('message', (event: MessageEvent<unknown>) => {
    const path = (event.data as { path?: unknown } | null)?.path
    if (typeof path === 'string') go(parse(path))
  })
}
