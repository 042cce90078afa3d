// Sizes in device pixels that can be believed. A browser that plays a device of another density (the device
// mode of developer tools, a browser driven by a test) reports them without that factor; the terminal would
// then be drawn at half or twice its size. Such reports are kept from whoever is made within `make`; it goes
// by the pixel ratio then, which is right.

const ROUNDING_PX = 2

export function withTrueBoxes<T>(make: () => T): T {
  const known = window.ResizeObserver
  window.ResizeObserver = class extends known {
    constructor(callback: ResizeObserverCallback) {
      super((entries, observer) => {
        const honest = entries.filter(agrees)
        if (honest.length > 0) callback(honest, observer)
      })
    }
  }
  try {
    return make()
  } finally {
    window.ResizeObserver = known
  }
}

function agrees(entry: ResizeObserverEntry): boolean {
  const box = entry.devicePixelContentBoxSize?.[0]
  if (!box) return true
  return Math.abs(box.inlineSize - entry.contentRect.width * devicePixelRatio) <= ROUNDING_PX
}
