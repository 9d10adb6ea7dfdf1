import { Button } from '../../parts/button.tsx'
import { AnswerForm } from './answer-form.tsx'
import type { OpenQuestion } from './calls.ts'
import { AddRootButton, RootsEditor, roots, rootsResult } from './roots-editor.tsx'

/** The list of roots, which can be changed before it is sent. */
export const RootsCard = ({ open }: { readonly open: OpenQuestion }) => {
  const send = (): void => open.answer({ kind: 'result', result: rootsResult() })
  return (
    <AnswerForm onSubmit={send}>
      <RootsEditor />
      <div class="question-actions">
        <Button kind="primary" keys="mod+Enter" onClick={send}>
          Send {roots.value.length === 1 ? '1 root' : `${roots.value.length} roots`}
        </Button>
        <AddRootButton />
        <Button kind="quiet" onClick={() => open.answer({ kind: 'refuse', message: 'The user rejected the request' })}>
          Reject
        </Button>
      </div>
    </AnswerForm>
  )
}
