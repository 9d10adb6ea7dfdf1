import { useState } from 'preact/hooks'
import { hasExpired, messageOf } from './api.ts'
import { Button } from './parts/button.tsx'
import { Field } from './parts/field.tsx'
import { signIn } from './session.ts'

/** The form for users who are not signed in. The address stays: after signing in the page shows the same place. */
export const SignIn = () => {
  const [token, setToken] = useState('')
  const [failure, setFailure] = useState<string | undefined>()
  const [isBusy, setBusy] = useState(false)

  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    const given = token.trim()
    if (given === '') return setFailure('Paste a token first')
    setBusy(true)
    setFailure(undefined)
    try {
      await signIn({ token: given })
    } catch (error) {
      setFailure(messageOf(error))
      setBusy(false)
    }
  }

  return (
    <main class="sign-in">
      <form onSubmit={event => void submit(event)}>
        <h1>Sign in to Dragoman</h1>
        {hasExpired.value && <p>Your session has ended. Sign in again: you return to where you were.</p>}
        <Field label="API token" error={failure} hint="It must be valid for every workspace.">
          {control => (
            <input
              {...control}
              type="password"
              name="token"
              autocomplete="current-password"
              spellcheck={false}
              autofocus
              value={token}
              onInput={({ currentTarget }) => setToken(currentTarget.value)}
            />
          )}
        </Field>
        <Button type="submit" kind="primary" isBusy={isBusy}>
          Sign in
        </Button>
        <p class="sign-in-other">
          On the machine that runs the gateway, <code>dragoman console</code> prints a link that needs no token.
          <br />
          <code>dragoman token create NAME --admin</code> makes a token that may change things; without{' '}
          <code>--admin</code> it may look.
        </p>
      </form>
    </main>
  )
}
