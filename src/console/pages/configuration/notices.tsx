import { Callout } from '../../parts/callout.tsx'
import { isOwner } from '../../session.ts'
import { draft, file, isDirty, newer } from './store.ts'

/** What the user must know before they edit: why they cannot, what is wrong with the file, what waits for a restart. */
export const Notices = ({ onCompare }: { readonly onCompare: () => void }) => {
  const found = file.value
  if (!found) return null
  const { edit, issues, rejected, pending, note, isBuiltIn } = found
  const waiting = pending?.settings ?? []
  return (
    <div class="config-notices">
      {newer.value && isDirty.value && (
        <Callout kind="warn">
          <p>
            The file has changed since you began.{' '}
            <button type="button" class="link" onClick={onCompare}>
              Compare and merge
            </button>
          </p>
        </Callout>
      )}
      {!isOwner.value && (
        <Callout>
          You can look at the configuration. To change it, open the link that “dragoman console” prints.
        </Callout>
      )}
      {isOwner.value && !edit.isAllowed && <Callout>{edit.reason}</Callout>}
      {issues.length > 0 && !isDirty.value && (
        <Callout kind="error">
          <p>
            {issues[0]?.line === undefined
              ? issues[0]?.message
              : `The file has problems: line ${issues[0].line}: ${issues[0].message}.`}{' '}
            {rejected && 'The previous configuration stays in use.'}
          </p>
        </Callout>
      )}
      {issues.length === 0 && rejected && (
        <Callout kind="error">
          <p>The last change was not applied: {rejected.reason}</p>
        </Callout>
      )}
      {waiting.length > 0 && (
        <Callout kind="warn">
          <p>
            Saved settings wait for a restart (<code>dragoman restart</code>):{' '}
            {waiting.flatMap(({ name, details }) => details.map(({ at }) => `${name}.${at}`)).join(', ')}
          </p>
        </Callout>
      )}
      {note && <Callout>{note}</Callout>}
      {isBuiltIn && draft.value.text === undefined && (
        <Callout>
          <p>
            The file says <code>"mcpServers": "default"</code>. The built-in servers are written out when you change one
            or add another.
          </p>
        </Callout>
      )}
    </div>
  )
}
