// A first proposal for the name of this device, from what the browser says of itself.

export function suggestedName(agent: string): string {
  const device = /iPhone/.test(agent)
    ? 'iphone'
    : /iPad/.test(agent)
      ? 'ipad'
      : /Android/.test(agent)
        ? /Mobile/.test(agent)
          ? 'phone'
          : 'tablet'
        : /Macintosh/.test(agent)
          ? 'mac'
          : /Windows/.test(agent)
            ? 'pc'
            : 'browser'
  return device
}

const RULE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

/** As the host wants names of actors. */
export function isName(text: string): boolean {
  return RULE.test(text)
}

/** What somebody typed, brought to the rule where that is obvious: spaces become dashes. */
export function tidyName(text: string): string {
  return text.trim().replace(/\s+/g, '-')
}
