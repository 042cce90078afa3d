// Which answers to a prompt get a button of their own. Pure. Only what the question itself offers is taken from it, in
// brackets or as a numbered menu: a guess that looks like an answer would be pressed. A question for text offers none.

interface QuickAnswer {
  readonly text: string
  readonly label: string
  readonly testid: string
}

const LETTERS = /[[(]([a-z?](?:[/,][a-z?]){1,7})[\])]/i
const WORDS = /[[(](yes)\/(no)\b[^\])]*[\])]*/i
const ENTRY = /^\s*[[(]?(\d{1,2})[\]).:]\s+(\S.*)$/
const ENTRIES_MAX = 9
const ENTRY_CHARS = 40

/** `above`: the lines over the prompt, the nearest last. */
export function quickAnswers(prompt: string, above: readonly string[] = []): QuickAnswer[] {
  const words = WORDS.exec(prompt)
  if (words) return choices([words[1]!, words[2]!])
  const letters = LETTERS.exec(prompt)
  if (letters) return choices(letters[1]!.split(/[/,]/))
  return menu(above)
}

/** A single capital is the default, which Enter gives as well. */
function choices(offered: readonly string[]): QuickAnswer[] {
  const answers = [...new Set(offered.map((choice) => choice.toLowerCase()))].map((choice) => ({
    text: choice,
    label: choice,
    testid: `prompt-answer-${choice[0]}`,
  }))
  const capitals = offered.filter((choice) => /^[A-Z]/.test(choice))
  if (capitals.length !== 1 || offered.length === capitals.length) return answers
  const enter = { text: '', label: `Enter (${capitals[0]!.toLowerCase()})`, testid: 'prompt-answer-enter' }
  return [...answers, enter]
}

/** Entries numbered from 1 without a gap, directly over the prompt. */
function menu(above: readonly string[]): QuickAnswer[] {
  const entries: QuickAnswer[] = []
  for (const line of [...above].reverse()) {
    if (line.trim() === '' && entries.length === 0) continue
    const found = ENTRY.exec(line)
    if (!found) break
    const [, number, name] = found as unknown as [string, string, string]
    const cut = name.trim().length > ENTRY_CHARS ? `${name.trim().slice(0, ENTRY_CHARS - 1)}…` : name.trim()
    entries.unshift({ text: number, label: `${number} ${cut}`, testid: `prompt-answer-${number}` })
  }
  const whole = entries.every((entry, index) => entry.text === String(index + 1))
  return whole && entries.length >= 2 && entries.length <= ENTRIES_MAX ? entries : []
}
