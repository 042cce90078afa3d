// The invite link in the address of the page, taken out of it as soon as it was read: its secret must not stay in the
// history or on a shared screen.

import { parse, path } from '../route'

/** The link; null: there is none in the address. */
export function takeLink(): string | null {
  if (parse(location.pathname).page !== 'join' || location.hash.length < 2) return null
  const link = location.href
  history.replaceState(null, '', path({ page: 'join' }))
  return link
}

/** Tells of each further link that is opened in this tab: another fragment alone loads no page. */
export function onLink(opened: (link: string) => void): () => void {
  const look = (): void => {
    const link = takeLink()
    if (link !== null) opened(link)
  }
  addEventListener('hashchange', look)
  addEventListener('popstate', look)
  return () => {
    removeEventListener('hashchange', look)
    removeEventListener('popstate', look)
  }
}
