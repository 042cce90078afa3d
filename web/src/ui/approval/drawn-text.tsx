// A command as its exact characters: every space and line end is seen, and what does not show by itself has its name.

import { Fragment } from 'preact'
import { hiddenText, piecesOf, spokenText, type Piece } from './exact-text'

interface Props {
  readonly text: string
  readonly ends: boolean // Enter follows it
}

export function ExactText({ text, ends }: Props) {
  const pieces = piecesOf(ends ? `${text}\n` : text)
  const hidden = hiddenText(pieces)
  return (
    <div class="exact">
      <span class="unseen" data-testid="approval-spoken">
        {spokenText(pieces)}
      </span>
      <code class="exact-text" aria-hidden="true" data-testid="approval-text">
        {pieces.map((piece, index) => (
          <Fragment key={index}>{drawn(piece, index === pieces.length - 1)}</Fragment>
        ))}
      </code>
      {hidden && (
        <p class="exact-hidden" data-testid="approval-hidden">
          <strong>{hidden}.</strong> What you read is not all there is.
        </p>
      )}
    </div>
  )
}

function drawn(piece: Piece, last: boolean) {
  switch (piece.kind) {
    case 'text':
      return piece.text
    case 'space':
      // A line may break behind it, and not before.
      return (
        <>
          <span class="mark">·</span>
          <wbr />
        </>
      )
    case 'tab':
      return <span class="mark">⇥{'\u2003'}</span>
    case 'end':
      return (
        <>
          <span class="mark">⏎</span>
          {!last && <br />}
        </>
      )
    case 'named':
      return <span class="named">{piece.code}</span>
  }
}
