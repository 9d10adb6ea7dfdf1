import { useState } from 'preact/hooks'
import { parseExact, stringifyExact } from '../../exact-json.ts'
import {
  type ClientSettings,
  DECLARABLE,
  DEFAULT_SETTINGS,
  type DeclarableId,
  EXTENSIONS,
  LOG_LEVELS,
} from '../../mcp/client-settings.ts'
import { isObject, type JsonObject } from '../../mcp/messages.ts'
import { Button } from '../../parts/button.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { Field, TextInputField } from '../../parts/field.tsx'
import { Select } from '../../parts/select.tsx'

export interface ClientDialogProps {
  readonly settings: ClientSettings
  readonly onChange: (settings: ClientSettings) => void
  readonly onClose: () => void
}

/** An object as it was typed; undefined if it is none. */
const readObject = (text: string): JsonObject | undefined => {
  if (text.trim() === '') return {}
  try {
    const value = parseExact(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Extensions as they were typed; undefined if they are no object of objects. */
const readExtensions = (text: string): JsonObject | undefined => {
  const value = readObject(text)
  return value && Object.values(value).every(isObject) ? value : undefined
}

const textOf = (object: JsonObject): string => (Object.keys(object).length === 0 ? '' : stringifyExact(object, '  '))

/** Chooses what the client of the page declares to servers, and how it reads lists. */
export const ClientDialog = ({ settings, onChange, onClose }: ClientDialogProps) => {
  const [declared, setDeclared] = useState<readonly DeclarableId[]>(settings.declared)
  const [text, setText] = useState(textOf(settings.extensions))
  const [isPaged, setPaged] = useState(settings.isPaged)
  const [logLevel, setLogLevel] = useState(settings.logLevel)
  const [metaText, setMetaText] = useState(textOf(settings.meta))
  const [extensions, meta] = [readExtensions(text), readObject(metaText)]
  const submit = (): void => {
    if (!extensions || !meta) return
    onChange({ declared, extensions, isPaged, logLevel, meta })
    onClose()
  }
  const toggle = (id: DeclarableId, isOn: boolean): void =>
    setDeclared(DECLARABLE.map(each => each.id).filter(each => (each === id ? isOn : declared.includes(each))))
  const toggleExtension = (name: string, isOn: boolean): void => {
    const { [name]: _, ...others } = extensions ?? {}
    setText(textOf(isOn ? { ...others, [name]: EXTENSIONS[name] ?? {} } : others))
  }
  const reset = (): void => {
    setDeclared(DEFAULT_SETTINGS.declared)
    setText('')
    setPaged(false)
    setLogLevel(DEFAULT_SETTINGS.logLevel)
    setMetaText('')
  }
  return (
    <Dialog
      title="The client of this page"
      size="medium"
      onClose={onClose}
      onSubmit={submit}
      footer={
        <>
          <Button onClick={reset}>Defaults</Button>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" disabled={!extensions || !meta}>
            Use
          </Button>
        </>
      }
    >
      <p class="quiet">
        Servers offer and ask only what a client declares. A change of that, or of the log level, connects again.
      </p>
      <fieldset class="client-choices">
        <legend>It can be asked for</legend>
        {DECLARABLE.map(({ id, label }) => (
          <Check key={id} label={label} isOn={declared.includes(id)} onChange={isOn => toggle(id, isOn)} />
        ))}
      </fieldset>
      <fieldset class="client-choices">
        <legend>Extensions</legend>
        {Object.keys(EXTENSIONS).map(name => (
          <Check
            key={name}
            label={name}
            isOn={extensions !== undefined && Object.hasOwn(extensions, name)}
            isDisabled={!extensions}
            onChange={isOn => toggleExtension(name, isOn)}
          />
        ))}
      </fieldset>
      <TextInputField
        label="Extensions as JSON"
        hint="Each name with an object: what the client says of itself there"
        error={extensions ? undefined : 'Expected an object whose members are objects, such as {"example.com/x": {}}'}
        rows={4}
        value={text}
        onValue={setText}
      />
      <Field label="Log level" hint="Servers send messages of this severity and above">
        {control => (
          <Select
            {...control}
            value={logLevel}
            options={LOG_LEVELS.map(level => ({ value: level, label: level }))}
            onChange={setLogLevel}
          />
        )}
      </Field>
      <TextInputField
        label="_meta of calls as JSON"
        hint="Further members, such as a trace; the protocol's own ones are set by the client"
        error={meta ? undefined : 'Expected an object, such as {"example.com/tenant": "blue"}'}
        rows={3}
        value={metaText}
        onValue={setMetaText}
      />
      <fieldset class="client-choices">
        <legend>Lists</legend>
        <Check label="Page by page: the next page is read on demand" isOn={isPaged} onChange={setPaged} />
      </fieldset>
    </Dialog>
  )
}

interface CheckProps {
  readonly label: string
  readonly isOn: boolean
  readonly isDisabled?: boolean
  readonly onChange: (isOn: boolean) => void
}

const Check = ({ label, isOn, isDisabled = false, onChange }: CheckProps) => (
  <label class="client-check">
    <input
      type="checkbox"
      checked={isOn}
      disabled={isDisabled}
      onChange={({ currentTarget }) => onChange(currentTarget.checked)}
    />
    {label}
  </label>
)
