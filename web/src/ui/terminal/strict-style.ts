// Lets the terminal style itself under a Content-Security-Policy without 'unsafe-inline'.
//
// xterm.js makes <style> elements and style attributes, which such a policy blocks. Styles set through the
// object model are not blocked: the same text goes there. Two doors are changed, for the whole page: the
// text of a new <style>, and setAttribute('style', ...).

export function styleThroughObjects(): void {
  const make = document.createElement.bind(document) as (
    tag: string,
    options?: ElementCreationOptions,
  ) => Element
  document.createElement = ((tag: string, options?: ElementCreationOptions) => {
    return tag.toLowerCase() === 'style' ? sheetHolder(make('template')) : make(tag, options)
  }) as typeof document.createElement

  const setAttribute = Element.prototype.setAttribute
  Element.prototype.setAttribute = function (this: Element, name: string, value: string): void {
    if (name === 'style' && this instanceof HTMLElement) this.style.cssText = value
    else setAttribute.call(this, name, value)
  }
}

/** Stands where the <style> would (even an empty one is blocked); its text lives in a sheet of its own. */
function sheetHolder(element: Element): Element {
  let sheet: CSSStyleSheet | null = null
  const drop = (): void => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((other) => other !== sheet)
    sheet = null
  }
  Object.defineProperty(element, 'textContent', {
    get: () => '',
    set: (text: string) => {
      if (!sheet) {
        sheet = new CSSStyleSheet()
        document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet]
      }
      sheet.replaceSync(text)
    },
  })
  const remove = element.remove.bind(element)
  element.remove = () => {
    drop()
    remove()
  }
  return element
}
