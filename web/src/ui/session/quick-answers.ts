// Which answers to a prompt get a button of their own. Pure. Only what the question itself offers is taken from it, in
// brackets or as a numbered menu: a guess that looks like an answer would be pressed. A question for text offers none.

interface QuickAnswer {
  readonly text: string
  readonly label: string
  readonly hint: string // beside it: the letter that is sent, and whether Enter alone gives the same
  readonly testid: string
}

const LETTERS = /[[(]([a-z?](?:[/,][a-z?]){1,7})[\])]/i
const WORDS = /[[(](yes)\/(no)\b[^\])]*[\])]*/i
// What may follow the offer: its default in brackets, and the sign that ends a question. After any other word the offer is
// part of what was said before the question, and somebody who types already has begun an answer of their own.
const NOTHING_MORE = /^\s*(?:[[(][^\])]*[\])])?[\s?:>]*$/
const ENTRY = /^\s*[[(]?(\d{1,2})[\]).:]\s+(\S.*)$/
const COLUMNS = /\s\d{1,2}\) / // of a list in several: what the rest of its line is
const ENTRIES_MAX = 9
const ENTRY_CHARS = 40

// A prompt that is made of these words alone, one of the first sort among them, asks for an entry of the list. Any other
// word is what it asks for: a phone number, a name to choose.
const ASKS_FOR_ENTRY = new Set(
  'choice choose entry item number one option pick select selection which'.split(' '),
)
const SAYS_NOTHING_ELSE = new Set(
  'a above an and by choose default do enter from is its list make menu please press return the to type use want what you your'.split(
    ' ',
  ),
)
const RANGE = /[[(]1\s*(?:-|–|\.\.|to)\s*(\d{1,2})[\])]/
const SELECT = /\bselect\s+\w+(?:\s+in\b|\s*;)/ // the loop of bash and zsh

/** `above`: the lines over the prompt, the nearest last. `command`: the line that runs, as the shell took it. */
export function quickAnswers(prompt: string, above: readonly string[] = [], command = ''): QuickAnswer[] {
  const words = offer(WORDS, prompt)
  if (words) return choices([words[1]!, words[2]!])
  const letters = offer(LETTERS, prompt)
  if (letters) return choices(letters[1]!.split(/[/,]/))
  const entries = menu(above)
  return asksForEntry(prompt, entries.length) || isSelect(above, command) ? entries : []
}

function offer(pattern: RegExp, prompt: string): RegExpExecArray | null {
  const found = pattern.exec(prompt)
  return found && NOTHING_MORE.test(prompt.slice(found.index + found[0].length)) ? found : null
}

/** A list over a prompt is a menu only if the prompt says so: over `Hostname: ` it is something that was printed. */
function asksForEntry(prompt: string, entries: number): boolean {
  if (prompt.trim() === '#?') return true
  const range = RANGE.exec(prompt)
  if (range) return Number(range[1]) === entries
  const words = prompt.toLowerCase().match(/\p{L}+/gu) ?? []
  return (
    words.some((word) => ASKS_FOR_ENTRY.has(word)) &&
    words.every((word) => ASKS_FOR_ENTRY.has(word) || SAYS_NOTHING_ELSE.has(word))
  )
}

/** The shell itself asks, with a prompt of any words (PS3) directly under its list. */
function isSelect(above: readonly string[], command: string): boolean {
  return SELECT.test(command) && /^ *\d+\) \S/.test(above.at(-1) ?? '')
}

const NAMES: Readonly<Record<string, string>> = { y: 'Yes', n: 'No', yes: 'Yes', no: 'No' }

/** A single capital is the default. */
function choices(offered: readonly string[]): QuickAnswer[] {
  const all = [...new Set(offered.map((choice) => choice.toLowerCase()))]
  const capitals = offered.filter((choice) => /^[A-Z]/.test(choice))
  const preset = capitals.length === 1 && offered.length > 1 ? capitals[0]!.toLowerCase() : ''
  const named = all.includes('y') === all.includes('n') // a lone y need not mean yes
  return all.map((choice) => {
    const label = (named && NAMES[choice]) || choice
    return {
      text: choice,
      label,
      hint: [label.toLowerCase() === choice ? '' : choice, choice === preset ? 'default' : '']
        .filter(Boolean)
        .join(', '),
      testid: `prompt-answer-${choice[0]}`,
    }
  })
}

/** Entries numbered from 1 without a gap, directly over the prompt. */
function menu(above: readonly string[]): QuickAnswer[] {
  const entries: QuickAnswer[] = []
  for (const line of [...above].reverse()) {
    if (line.trim() === '' && entries.length === 0) continue
    const found = ENTRY.exec(line)
    if (!found || COLUMNS.test(found[2]!)) break
    const [, number, name] = found as unknown as [string, string, string]
    const cut = name.trim().length > ENTRY_CHARS ? `${name.trim().slice(0, ENTRY_CHARS - 1)}…` : name.trim()
    entries.unshift({ text: number, label: `${number} ${cut}`, hint: '', testid: `prompt-answer-${number}` })
  }
  const whole = entries.every((entry, index) => entry.text === String(index + 1))
  return whole && entries.length >= 2 && entries.length <= ENTRIES_MAX ? entries : []
}
