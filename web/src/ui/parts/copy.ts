// Puts a text into the clipboard and says so, or that the browser did not let it.

import { toast } from './toast'

export async function copy(text: string, said: string, otherwise = ''): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    toast(said, 'good')
    return true
  } catch {
    toast(`The browser blocked copying${otherwise}`)
    return false
  }
}
