// The terminal itself: xterm.js with what this app wants of it. It draws and it reports what was typed;
// whether that may be sent is not its business, nor is how large it is shown.

import { SearchAddon } from '@xterm/addon-search'
import { WebLinksAddon } from '@xterm/addon-web-links'
import { WebglAddon } from '@xterm/addon-webgl'
import { Terminal, type IDisposable } from '@xterm/xterm'
import type { Theme } from '../parts/theme'
import { isPlain } from './keys'
import type { CellRatio, Extent, Grid, Spot } from './lens-geometry'
import { DARK, FONTS, LIGHT } from './palette'
import { hasGraphicsCard } from './graphics'
import { withTrueBoxes } from './pixel-boxes'
import { useHostWidths } from './character-widths'

const SCROLLBACK_LINES = 10_000 // about 15 MB at 120 columns
const OSC52_MAX_CHARS = 1_400_000 // a megabyte in base64: more is not meant for a clipboard

interface ScreenHooks {
  typed(text: string): void
  binary(text: string): void // mouse reports that are not UTF-8
  answers(): boolean // whether this terminal answers a program's queries
  holds(): boolean // whether this device holds the turn
  moved(): void // the cursor, or the size
  covered(fullScreen: boolean): void // a program took the alternate screen, or gave it back
  key(event: KeyboardEvent): boolean // false: the app took it
}

export class Screen {
  readonly term: Terminal
  readonly search = new SearchAddon()
  private readonly undo: IDisposable[] = []
  private webgl: WebglAddon | null = null
  private hovered = '' // the address of the link under the mouse
  private accent = false // a dead key waits for the one it belongs to

  private readonly linkHover = {
    hover: (_event: MouseEvent, address: string): void => {
      this.hovered = address
      this.stage.title = isWeb(address) ? `${address}\nCtrl+click opens it` : ''
    },
    leave: (): void => {
      this.hovered = ''
      this.stage.title = ''
    },
  }

  constructor(
    private readonly stage: HTMLElement,
    grid: Grid,
    theme: Theme,
    font: number,
    private readonly hooks: ScreenHooks,
  ) {
    this.term = new Terminal({
      ...grid,
      allowProposedApi: true, // unicode versions
      cursorBlink: false, // a blinking cursor repaints the page forever
      cursorInactiveStyle: 'outline',
      fontFamily: FONTS,
      fontSize: font,
      scrollback: SCROLLBACK_LINES,
      theme: theme === 'dark' ? DARK : LIGHT,
      minimumContrastRatio: theme === 'dark' ? 1 : 4.5, // programs choose colours for dark backgrounds
      macOptionIsMeta: true,
      rightClickSelectsWord: false,
      linkHandler: { activate: openLink, ...this.linkHover },
    })
  }

  open(): void {
    const { term } = this
    useHostWidths(term)
    term.loadAddon(this.search)
    term.loadAddon(new WebLinksAddon(openLink, this.linkHover))
    term.open(this.stage)
    if (hasGraphicsCard()) this.useWebgl()
    this.stage.dataset.drawnBy = this.webgl ? 'webgl' : 'elements'
    this.undo.push(
      term.onData((text) => this.hooks.typed(text)),
      term.onBinary((text) => this.hooks.binary(text)),
      term.onCursorMove(() => this.hooks.moved()),
      term.onResize(() => this.hooks.moved()),
      term.buffer.onBufferChange((buffer) => this.hooks.covered(buffer.type === 'alternate')),
    )
    term.attachCustomKeyEventHandler((event) => this.hooks.key(event) && !this.shortWay(event))
    // In a full-screen program the wheel becomes arrow keys: a watcher who scrolls must not type.
    term.attachCustomWheelEventHandler(() => this.hooks.holds() || term.buffer.active.type === 'normal')
    this.silenceQueries()
    this.takeClipboard()
    this.freshLines()
  }

  write(data: Uint8Array | string, done?: () => void): void {
    this.term.write(data, done)
  }

  size(grid: Grid): void {
    if (grid.cols !== this.term.cols || grid.rows !== this.term.rows) this.term.resize(grid.cols, grid.rows)
  }

  font(px: number): void {
    if (this.term.options.fontSize !== px) this.term.options.fontSize = px
  }

  theme(theme: Theme): void {
    this.term.options.theme = theme === 'dark' ? DARK : LIGHT
    this.term.options.minimumContrastRatio = theme === 'dark' ? 1 : 4.5
  }

  /** Its lines as text for a screen reader, and what is printed said aloud. */
  readable(on: boolean): void {
    this.term.options.screenReaderMode = on
  }

  /** How large the screen is drawn, in pixels of the page. */
  extent(): Extent {
    const drawn = this.stage.querySelector<HTMLElement>('.xterm-screen')
    return { width: drawn?.offsetWidth ?? 0, height: drawn?.offsetHeight ?? 0 }
  }

  /** A cell for one pixel of font size; a guess until something was drawn. */
  cell(): CellRatio {
    const { width, height } = this.extent()
    const font = this.term.options.fontSize ?? 13
    if (!width || !height) return { width: 0.6, height: 1.2 }
    return { width: width / this.term.cols / font, height: height / this.term.rows / font }
  }

  cursor(): Spot {
    const { width, height } = this.extent()
    const { cursorX, cursorY, baseY, viewportY } = this.term.buffer.active
    const cell = { width: width / this.term.cols, height: height / this.term.rows }
    const row = Math.min(this.term.rows - 1, cursorY + baseY - viewportY)
    return { x: Math.min(cursorX, this.term.cols - 1) * cell.width, y: row * cell.height, ...cell }
  }

  /** The text of the lines from the top of the scrollback on. */
  line(index: number): string {
    return this.term.buffer.active.getLine(index)?.translateToString(true) ?? ''
  }

  /** The characters of a line, cell by cell; the second cell of a wide one repeats it. */
  cells(index: number): string[] {
    const line = this.term.buffer.active.getLine(index)
    return Array.from({ length: line?.length ?? 0 }, (_, x) => {
      const cell = line!.getCell(x)
      return cell?.getWidth() === 0 ? (line!.getCell(x - 1)?.getChars() ?? '') : (cell?.getChars() ?? '')
    })
  }

  /** The address of the link at a place on the stage: one that is written out, or one that a program gave its text.
      Only the terminal knows both, and only of the mouse: so a mouse is moved there, seen by nothing else. */
  linkAt(x: number, y: number): string {
    const drawn = this.stage.querySelector<HTMLElement>('.xterm-screen')
    if (!drawn) return ''
    const box = drawn.getBoundingClientRect()
    const moveTo = (left: number, top: number): void => {
      const at = { clientX: box.left + left, clientY: box.top + top }
      drawn.dispatchEvent(new MouseEvent('mousemove', { ...at, bubbles: false }))
    }
    const elsewhere = y < box.height / 2 ? box.height - 2 : 2 // it looks again only after a move to another line
    moveTo(1, elsewhere)
    moveTo(x, y)
    const found = this.hovered
    moveTo(1, elsewhere)
    drawn.dispatchEvent(new MouseEvent('mouseleave', { bubbles: false }))
    this.linkHover.leave()
    return isWeb(found) ? found : ''
  }

  dispose(): void {
    for (const each of this.undo) each.dispose()
    this.webgl?.dispose()
    this.term.dispose()
  }

  /** A plain character goes straight to who sends it. The terminal's own way ends in a new drawing of all of it, which
      the echo then has to wait for; it is kept for whatever needs more than sending. */
  private shortWay(event: KeyboardEvent): boolean {
    if (event.type !== 'keydown') return false
    if (event.key === 'Dead') this.accent = true
    if (!isPlain(event)) return false
    const { term } = this
    const { viewportY, baseY } = term.buffer.active
    const more = this.accent || term.hasSelection() || viewportY !== baseY
    this.accent = false
    if (more) return false
    event.preventDefault()
    event.stopPropagation()
    this.hooks.typed(event.key)
    // As the terminal does it for keys of its own: what comes next is drawn at once and not by a timer.
    coreOf(term)?._writeBuffer?.handleUserInput()
    return true
  }

  private useWebgl(): void {
    try {
      const webgl = new WebglAddon()
      // The browser takes the context away when it is short of memory; plain elements always work.
      webgl.onContextLoss(() => {
        webgl.dispose()
        this.webgl = null
        this.stage.dataset.drawnBy = 'elements'
      })
      withTrueBoxes(() => this.term.loadAddon(webgl))
      this.webgl = webgl
    } catch {
      this.webgl = null
    }
  }

  /** A query must be answered once, by the terminal the host says; the others swallow it. */
  private silenceQueries(): void {
    const { parser } = this.term
    const quiet = (): boolean => !this.hooks.answers()
    const csi = [
      { final: 'n' },
      { prefix: '?', final: 'n' },
      { final: 'c' },
      { prefix: '>', final: 'c' },
      { prefix: '=', final: 'c' },
      { prefix: '>', final: 'q' },
      { prefix: '?', final: 'u' },
      { intermediates: '$', final: 'p' },
      { prefix: '?', intermediates: '$', final: 'p' },
    ]
    for (const id of csi) this.undo.push(parser.registerCsiHandler(id, quiet))
    this.undo.push(parser.registerDcsHandler({ intermediates: '$', final: 'q' }, quiet))
    for (const id of [4, 10, 11, 12]) {
      this.undo.push(parser.registerOscHandler(id, (data) => data.includes('?') && quiet()))
    }
  }

  /** OSC 52: a program may set the clipboard of the turn holder. It may never read one. */
  private takeClipboard(): void {
    const take = (data: string): boolean => {
      const text = data.slice(data.indexOf(';') + 1)
      if (text === '?' || text.length > OSC52_MAX_CHARS || !this.hooks.holds()) return true
      try {
        const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0))
        void navigator.clipboard?.writeText(new TextDecoder().decode(bytes)).catch(() => undefined)
      } catch {
        // Not base64: nothing to copy.
      }
      return true
    }
    this.undo.push(this.term.parser.registerOscHandler(52, take))
  }

  /** OSC 133: a prompt begins on a line of its own, as in the host's own screen. Otherwise everything after
      output without a line end would stand one line higher here than for everybody else. */
  private freshLines(): void {
    const begins = (data: string): boolean => {
      const { cursorX } = this.term.buffer.active
      if (/^[ALN](;|$)/.test(data) && cursorX > 0) coreOf(this.term)?._inputHandler?.nextLine()
      return false
    }
    this.undo.push(this.term.parser.registerOscHandler(133, begins))
  }
}

/** What there is no public way to. */
interface Core {
  _inputHandler?: { nextLine(): void } // moves the cursor in the middle of output: `write` only adds to the end
  _writeBuffer?: { handleUserInput(): void }
}

function coreOf(term: Terminal): Core | undefined {
  return (term as unknown as { _core?: Core })._core
}

/** With a modifier, so that a click on text stays a click; only the web, and without a way back. */
function openLink(event: MouseEvent, address: string): void {
  if (!event.ctrlKey && !event.metaKey) return
  if (isWeb(address)) window.open(address, '_blank', 'noopener,noreferrer')
}

function isWeb(address: string): boolean {
  return /^https?:\/\//i.test(address)
}
