import { useState } from 'preact/hooks'
import { Button } from '../../parts/button.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { Field } from '../../parts/field.tsx'

interface NameDialogProps {
  readonly title: string
  readonly label: string
  readonly action: string // the verb on the button
  readonly hint: string
  readonly value?: string | undefined
  readonly taken: readonly string[]
  readonly pattern?: RegExp | undefined
  readonly onName: (name: string) => void
  readonly onClose: () => void
}

/** Asks for a name that no other entry has. */
export const NameDialog = (props: NameDialogProps) => {
  const { title, label, action, hint, value = '', taken, pattern, onName, onClose } = props
  const [name, setName] = useState(value)
  const given = name.trim()
  const isTaken = given !== value && taken.includes(given)
  const isWrong = given !== '' && pattern !== undefined && !pattern.test(given)
  const error = isTaken ? `"${given}" exists already; choose another name.` : isWrong ? hint : undefined
  const isReady = given !== '' && given !== value && error === undefined
  return (
    <Dialog
      title={title}
      onClose={onClose}
      onSubmit={() => isReady && onName(given)}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" disabled={!isReady}>
            {action}
          </Button>
        </>
      }
    >
      <Field label={label} hint={hint} error={error} isRequired>
        {control => (
          <input
            {...control}
            spellcheck={false}
            autocomplete="off"
            value={name}
            onInput={({ currentTarget }) => setName(currentTarget.value)}
          />
        )}
      </Field>
    </Dialog>
  )
}
