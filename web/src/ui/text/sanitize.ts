// Sanitizes text chosen by programs and other actors. The page never inserts it as markup; what remains are
// characters that change the writing direction, are invisible, or take several lines, and so make a name or a
// command look like another.

const UNREADABLE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g // eslint-disable-line no-control-regex

/** On one line, each character that is not for reading as a dot. */
export function sanitize(text: string, limit = 400): string {
  const cut = text.length > limit ? `${text.slice(0, limit)}…` : text
  return cut.replace(UNREADABLE, '·')
}
