// The one Hold of the page, for every component that needs it.

import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { Hold } from '../hold/api'

export const HoldContext = createContext<Hold | null>(null)

export function useHold(): Hold {
  const hold = useContext(HoldContext)
  if (!hold) throw new Error('no Hold around this component')
  return hold
}
