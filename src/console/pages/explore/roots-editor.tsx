import { signal } from '@preact/signals'
import type { JsonObject } from '../../mcp/messages.ts'
import { Button, IconButton } from '../../parts/button.tsx'

interface ClientRoot {
  readonly uri: string
  readonly name: string
}

const isRoot = (uri: string): boolean => uri.startsWith('file://') && URL.canParse(uri)

/** The roots of this client; kept for the next question. */
export const roots = signal<readonly ClientRoot[]>([{ uri: 'file:///home/ann/project', name: 'project' }])

/** The result of `roots/list`. */
export const rootsResult = (): JsonObject => ({
  roots: roots.peek().map(({ uri, name }) => (name === '' ? { uri } : { uri, name })),
})

/** The list of roots, which can be changed. */
export const RootsEditor = () => {
  const change = (at: number, next: Partial<ClientRoot>): void => {
    roots.value = roots.value.map((root, index) => (index === at ? { ...root, ...next } : root))
  }
  return (
    <>
      {roots.value.map(({ uri, name }, at) => (
        <div key={at} class="form-item">
          <input
            class="mono"
            aria-label={`URI of root ${at + 1}`}
            aria-invalid={!isRoot(uri)}
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
      {!roots.value.every(({ uri }) => isRoot(uri)) && (
        <p class="field-error">A root is a URI that begins with file://</p>
      )}
    </>
  )
}

export const AddRootButton = () => (
  <Button
    icon="plus"
    onClick={() => {
      roots.value = [...roots.value, { uri: 'file:///', name: '' }]
    }}
  >
    Add root
  </Button>
)
