// Small things that this browser keeps for the page. Storage can be switched off: then nothing is found, and what is
// kept lasts as long as the page.

export function recall(key: string): string | null {
  try {
    return localStorage.getItem(key)
  } catch {
    return null
  }
}

export function keep(key: string, value: string): void {
  try {
    localStorage.setItem(key, value)
  } catch {
    // See above.
  }
}
