import { signal } from '@preact/signals'
import { Button, IconButton } from '../../parts/button.tsx'
import type { OpenQuestion } from './calls.ts'

interface ClientRoot {
  readonly uri: string
  readonly name: string
}

/** The roots of this client; kept for the next question. */
const roots = signal<readonly ClientRoot[]>([{ uri: 'file:///home/ann/project', name: 'project' }])

/** The list of roots, which can be changed before it is sent. */
export const RootsCard = ({ open }: { readonly open: OpenQuestion }) => {
  const change = (at: number, next: Partial<ClientRoot>): void => {
    roots.value = roots.value.map((root, index) => (index === at ? { ...root, ...next } : root))
  }
  const isValid = roots.value.every(({ uri }) => uri.startsWith('file://') && URL.canParse(uri))
  const send = (): void => {
    const list = roots.value.map(({ uri, name }) => (name === '' ? { uri } : { uri, name }))
    open.answer({ kind: 'result', result: { roots: list } })
  }
  return (
    <>
      {roots.value.map(({ uri, name }, at) => (
        <div key={at} class="form-item">
          <input
            class="mono"
            aria-label={`URI of root ${at + 1}`}
            aria-invalid={!(uri.startsWith('file://') && URL.canParse(uri))}
            value={uri}
            onInput={({ currentTarget }) => change(at, { uri: currentTarget.value })}
          />
          <input
            class="form-name"
            aria-label={`Name of root ${at + 1}`}
            placeholder="name"
            value={name}
            onInput={({ currentTarget }) => change(at, { name: currentTarget.value })}
          />
          <IconButton
            icon="trash"
            label={`Remove root ${at + 1}`}
            onClick={() => {
              roots.value = roots.value.toSpliced(at, 1)
            }}
          />
        </div>
      ))}
      {!isValid && <p class="field-error">A root is a URI that begins with file://</p>}
      <div class="question-actions">
        <Button kind="primary" onClick={send}>
          Send {roots.value.length === 1 ? '1 root' : `${roots.value.length} roots`}
        </Button>
        <Button
          icon="plus"
          onClick={() => {
            roots.value = [...roots.value, { uri: 'file:///', name: '' }]
          }}
        >
          Add root
        </Button>
        <Button kind="quiet" onClick={() => open.answer({ kind: 'refuse', message: 'The user rejected the request' })}>
          Reject
        </Button>
      </div>
    </>
  )
}
