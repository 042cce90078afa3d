// Asks for the permission to notify, once, by a click: never by itself.

import { Icon } from './icon'
import { askPermission, permission } from './notify'
import { say } from './toast'

export function NotifyButton() {
  if (permission.value !== 'default') return null
  const ask = async (): Promise<void> => {
    await askPermission()
    if ((permission.value as string) === 'granted') {
      say('You will be told when a session waits for input, ends, or somebody asks for your turn', 'good')
    }
  }
  return (
    <button
      class="icon-button"
      aria-label="Notify me"
      title="Notify me when a session waits for input"
      onClick={ask}
    >
      <Icon name="bell" />
    </button>
  )
}
