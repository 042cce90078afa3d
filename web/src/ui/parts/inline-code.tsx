// Our own sentences, with commands between backticks set as code.

export function InlineCode({ text }: { text: string }) {
  return (
    <>{text.split('`').map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}</>
  )
}
