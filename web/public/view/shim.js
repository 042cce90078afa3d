// In every page that comes from a port of a session: WebSockets to where the page came from go the same way as its
// requests, which a service worker cannot do for them. Others are the browser's.

;(() => {
  const Native = globalThis.WebSocket
  const LOOPBACK = ['localhost', '127.0.0.1', '[::1]', '0.0.0.0']

  function shell() {
    for (let at = window; at !== at.parent; at = at.parent) {
      try {
        if (typeof at.parent.holdSocket === 'function') return at.parent
      } catch {
        return null // of another origin
      }
    }
    return null
  }

  class CarriedSocket extends EventTarget {
    #port
    #open = 0
    #waiting = 0
    #handlers = {}
    binaryType = 'blob'
    protocol = ''
    extensions = ''

    constructor(url, protocols, around) {
      super()
      this.url = url
      this.#port = around.holdSocket(url, protocols)
      this.#port.onmessage = ({ data }) => this.#heard(data)
    }

    get readyState() {
      return this.#open
    }

    get bufferedAmount() {
      return this.#waiting
    }

    send(data) {
      if (this.#open === 0) throw new DOMException('Still in CONNECTING state', 'InvalidStateError')
      if (this.#open !== 1) return
      if (data instanceof Blob) {
        data.arrayBuffer().then((bytes) => this.#say(bytes))
        return
      }
      if (ArrayBuffer.isView(data)) data = data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength)
      this.#say(data instanceof ArrayBuffer ? data.slice(0) : String(data))
    }

    close(code = 1005, reason = '') {
      if (this.#open >= 2) return
      this.#open = 2
      this.#port.postMessage({ t: 'close', code, reason: String(reason) })
    }

    #say(data) {
      this.#waiting += typeof data === 'string' ? data.length : data.byteLength
      this.#port.postMessage({ t: 'send', data })
    }

    #heard(said) {
      if (said.t === 'open') {
        if (this.#open !== 0) return
        this.#open = 1
        this.protocol = said.protocol
        this.dispatchEvent(new Event('open'))
      } else if (said.t === 'sent') {
        this.#waiting -= said.size
      } else if (said.t === 'message') {
        const { data } = said
        const bytes = this.binaryType === 'arraybuffer' ? () => data.slice().buffer : () => new Blob([data])
        this.dispatchEvent(
          new MessageEvent('message', {
            data: typeof data === 'string' ? data : bytes(),
            origin: new URL(this.url).origin,
          }),
        )
      } else if (said.t === 'close') {
        this.#open = 3
        this.#port.close()
        if (!said.clean) this.dispatchEvent(new Event('error'))
        this.dispatchEvent(
          new CloseEvent('close', { code: said.code, reason: said.reason, wasClean: said.clean }),
        )
      }
    }

    static {
      for (const name of ['open', 'message', 'error', 'close']) {
        Object.defineProperty(this.prototype, `on${name}`, {
          get() {
            return this.#handlers[name] ?? null
          },
          set(handler) {
            if (this.#handlers[name]) this.removeEventListener(name, this.#handlers[name])
            this.#handlers[name] = typeof handler === 'function' ? handler : null
            if (this.#handlers[name]) this.addEventListener(name, this.#handlers[name])
          },
        })
      }
      for (const [name, value] of Object.entries({ CONNECTING: 0, OPEN: 1, CLOSING: 2, CLOSED: 3 })) {
        Object.defineProperty(this, name, { value })
        Object.defineProperty(this.prototype, name, { value })
      }
    }
  }

  const isOne = (value) => value instanceof CarriedSocket || value instanceof Native

  globalThis.WebSocket = new Proxy(Native, {
    get: (native, name) => (name === Symbol.hasInstance ? isOne : Reflect.get(native, name)),
    construct(native, [address, protocols = []], made) {
      const url = new URL(address, location.href)
      url.protocol = url.protocol.replace(/^http/, 'ws')
      const here = url.host === location.host || LOOPBACK.includes(url.hostname)
      const around = here ? shell() : null
      if (!around) return Reflect.construct(native, protocols.length ? [address, protocols] : [address], made)
      url.hash = ''
      return new CarriedSocket(url.href, [protocols].flat().map(String), around)
    },
  })
})()
