// Which answers to a prompt are worth a button of their own. Pure. Only what the prompt itself offers is
// taken from it: a guess that looks like an answer would be pressed.

interface QuickAnswer {
  readonly text: string
  readonly label: string
  readonly testid: string
}

const CHOICES = /[[(]([a-z?](?:[/,][a-z?]){1,7})[\])]/i

export function quickAnswers(prompt: string): QuickAnswer[] {
  const enter = { text: '', label: 'Enter', testid: 'prompt-answer-enter' }
  if (/\byes\/no\b/i.test(prompt)) {
    return [
      { text: 'yes', label: 'yes', testid: 'prompt-answer-y' },
      { text: 'no', label: 'no', testid: 'prompt-answer-n' },
    ]
  }
  const offered = CHOICES.exec(prompt)?.[1]?.split(/[/,]/) ?? ['y', 'n']
  const plain = new Set(offered.map((choice) => choice.toLowerCase()))
  const answers = [...plain].map((choice) => ({
    text: choice,
    label: choice,
    testid: `prompt-answer-${choice}`,
  }))
  return [...answers, enter]
}
