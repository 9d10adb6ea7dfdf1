import { highlightWords } from './highlight.ts'

export interface MarkedTextProps {
  readonly text: string
  readonly query: string
}

/** A text in which the words of a query are marked. */
export const MarkedText = ({ text, query }: MarkedTextProps) => (
  <>
    {highlightWords(text, query).map((piece, at) =>
      piece.isHit ? <mark key={at}>{piece.text}</mark> : <span key={at}>{piece.text}</span>,
    )}
  </>
)
