import '@xterm/xterm/css/xterm.css'
import '../../src/ui/style/tokens.css'
import '../../src/ui/style/base.css'
import '../../src/ui/style/labels.css'
import '../../src/ui/style/overview.css'
import '../../src/ui/style/pages.css'
import '../../src/ui/style/boxes.css'
import '../../src/ui/style/session.css'
import '../../src/ui/style/terminal.css'
import '../../src/ui/style/cards.css'
import '../../src/ui/style/panel.css'
import '../../src/ui/style/approval.css'
import '../../src/ui/style/score.css'
import '../../src/ui/style/touch.css'
import { mount } from '../../src/ui/app'
import { FakeHold } from './fake-hold'

declare global {
  interface Window {
    scene?: string
    fake?: FakeHold
  }
}

const scene = window.scene ?? new URLSearchParams(location.search).get('scene') ?? 'plain'
window.fake = new FakeHold(scene)
mount(window.fake, document.getElementById('app')!)
