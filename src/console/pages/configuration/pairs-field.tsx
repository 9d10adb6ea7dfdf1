import { useEffect, useId, useRef, useState } from 'preact/hooks'
import type { ConfigObject } from '../../../admin/api/config.ts'
import { Button, IconButton } from '../../parts/button.tsx'
import { isEqual } from './edits.ts'
import { hasHiddenPart, isHidden, shouldBeReference } from './hidden.ts'

interface PairsFieldProps {
  readonly name: string
  readonly hint?: string | undefined
  readonly error?: string | undefined
  readonly value: ConfigObject
  readonly onChange: (value: unknown) => void
}

interface Pair {
  readonly id: number
  readonly name: string
  readonly value: unknown
}

let count = 0
const pairsOf = (value: ConfigObject): readonly Pair[] =>
  Object.entries(value).map(([name, each]) => ({ id: ++count, name, value: each }))

/** Names and values: variables of a program, headers. Secrets of the file are kept until they are replaced. */
export const PairsField = ({ name, hint, error, value, onChange }: PairsFieldProps) => {
  const id = useId()
  const [pairs, setPairs] = useState(() => pairsOf(value))
  const sent = useRef(value)
  useEffect(() => {
    if (isEqual(sent.current, value)) return
    sent.current = value
    setPairs(pairsOf(value))
  }, [value])

  const update = (next: readonly Pair[]): void => {
    setPairs(next)
    const named = next.filter(pair => pair.name !== '')
    sent.current = Object.fromEntries(named.map(pair => [pair.name, pair.value]))
    onChange(named.length > 0 ? sent.current : undefined)
  }
  const set = (pair: Pair, part: Partial<Pair>): void =>
    update(pairs.map(each => (each === pair ? { ...pair, ...part } : each)))
  const literal = pairs.find(pair => shouldBeReference(pair.name, String(pair.value)) && !hasHiddenPart(pair.value))

  return (
    <fieldset class="field config-pairs" aria-describedby={`${id}-hint`}>
      <legend>{name}</legend>
      {pairs.map(pair => (
        <div key={pair.id} class="config-pair">
          <input
            class="mono"
            aria-label={`${name}: name`}
            spellcheck={false}
            value={pair.name}
            onInput={({ currentTarget }) => set(pair, { name: currentTarget.value })}
          />
          {isHidden(pair.value) ? (
            <span class="config-kept">
              <span class="truncate" title="A secret of the file. It is kept as it is.">
                •••••• kept
              </span>
              <button type="button" class="link" onClick={() => set(pair, { value: '' })}>
                Replace<span class="visually-hidden"> {pair.name}</span>
              </button>
            </span>
          ) : (
            <input
              class="mono"
              aria-label={`${name}: value of ${pair.name || 'the new name'}`}
              spellcheck={false}
              autocomplete="off"
              value={String(pair.value)}
              onInput={({ currentTarget }) => set(pair, { value: currentTarget.value })}
            />
          )}
          <IconButton
            icon="close"
            label={`Remove ${pair.name || 'the empty row'}`}
            onClick={() => update(pairs.filter(each => each !== pair))}
          />
        </div>
      ))}
      <div>
        <Button kind="quiet" icon="plus" onClick={() => setPairs([...pairs, { id: ++count, name: '', value: '' }])}>
          Add to {name}
        </Button>
      </div>
      <p id={`${id}-hint`} class={error === undefined ? 'field-hint' : 'field-error'}>
        {error ??
          (literal
            ? `${literal.name} is written into the file as it is. To keep it out, write \${${literal.name.replace(/\W+/g, '_').toUpperCase()}} and set that variable.`
            : hint)}
      </p>
    </fieldset>
  )
}
