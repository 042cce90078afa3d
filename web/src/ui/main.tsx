// Where the page begins.

import '@xterm/xterm/css/xterm.css'
import './style/tokens.css'
import './style/base.css'
import './style/labels.css'
import './style/overview.css'
import './style/pages.css'
import './style/boxes.css'
import './style/session.css'
import './style/terminal.css'
import './style/cards.css'
import './style/panel.css'
import './style/approval.css'
import './style/score.css'
import './style/touch.css'
import { openHold } from '../hold/hold'
import { mount } from './app'

mount(openHold(), document.getElementById('app')!)
