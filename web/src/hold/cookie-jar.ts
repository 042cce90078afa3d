// Cookies of one port that is viewed. A service worker neither sees the browser's nor can set any, so they are kept here,
// for as long as the view is open, and reach no other port.

interface Cookie {
  value: string
  path: string
  until: number // milliseconds since 1970
}

const COOKIES_MAX = 100

export class CookieJar {
  private readonly kept = new Map<string, Cookie>()

  /** A Set-Cookie of the program. Its domain does not matter: there is only this one. */
  set(text: string, from: string, now: number): void {
    const [pair = '', ...attributes] = text.split(';')
    const cut = pair.indexOf('=')
    const name = pair.slice(0, cut).trim()
    if (cut < 1 || name === '') return
    let path = from.slice(0, Math.max(1, from.lastIndexOf('/')))
    let until = Infinity
    for (const attribute of attributes) {
      const [key = '', value = ''] = attribute.split('=', 2).map((each) => each.trim())
      if (key.toLowerCase() === 'path' && value.startsWith('/')) path = value
      if (key.toLowerCase() === 'expires' && until === Infinity) until = Date.parse(value) || until
      if (key.toLowerCase() === 'max-age') until = now + Number(value) * 1000
    }
    const key = `${name} ${path}`
    this.kept.delete(key)
    if (until > now) this.kept.set(key, { value: pair.slice(cut + 1).trim(), path, until })
    if (this.kept.size > COOKIES_MAX) this.kept.delete(this.kept.keys().next().value as string)
  }

  /** For the Cookie header of a request to this path; null: none. */
  header(path: string, now: number): string | null {
    const counts = ([, cookie]: [string, Cookie]) =>
      cookie.until > now &&
      (path === cookie.path || path.startsWith(cookie.path.endsWith('/') ? cookie.path : `${cookie.path}/`))
    const found = [...this.kept]
      .filter(counts)
      .sort((one, other) => other[1].path.length - one[1].path.length)
    return found.length ? found.map(([key, { value }]) => `${key.split(' ')[0]}=${value}`).join('; ') : null
  }
}
