import type { LoginStep, LoginStepList } from '../../../admin/api/logins.ts'
import { Button } from '../../parts/button.tsx'
import { JsonText } from '../../parts/json-text.tsx'
import { Time } from '../../parts/quantities.tsx'
import { Facts, PaneSection } from './pane-parts.tsx'
import { useAnswer } from './use-answer.ts'

const TITLES: Readonly<Record<LoginStep['kind'], string>> = {
  challenge: 'The server is asked without a token',
  discovery: 'A metadata document is read',
  registration: 'The gateway registers as a client',
  authorization: 'The browser is sent to the authorization server',
  callback: 'The browser comes back',
  token: 'Tokens are requested',
  revocation: 'A token is revoked',
}

/** A refusal is a step as well: a server without a token answers 401, and some documents are not where they are looked for. */
const isExpected = ({ kind, status = 0 }: LoginStep): boolean =>
  status < 400 || kind === 'challenge' || (kind === 'discovery' && status === 404)

/** What was done for logins at a server, step by step: discovery, registration, authorization, tokens. */
export const LoginStepsView = ({ server }: { readonly server: string }) => {
  const { value, error, reload } = useAnswer<LoginStepList>(
    `admin/logins/servers/${encodeURIComponent(server)}/steps`,
    'logins',
  )
  const steps = value?.steps ?? []
  return (
    <PaneSection title="Steps" actions={<Button onClick={reload}>Refresh</Button>}>
      {error !== undefined && <p class="quiet">{error}.</p>}
      {steps.length === 0 && error === undefined && (
        <p class="quiet">Each request of a login appears here, without secrets, while the gateway runs.</p>
      )}
      <ol class="login-steps">
        {steps.map((step, at) => (
          <li key={`${step.at} ${at}`}>
            <Step step={step} />
          </li>
        ))}
      </ol>
    </PaneSection>
  )
}

const pathOf = (url: string): string => URL.parse(url)?.pathname ?? url

const Step = ({ step }: { readonly step: LoginStep }) => {
  const { at, kind, method, url, sent, request, status, challenge, answer, error } = step
  const result = error === undefined ? status : 'no answer'
  return (
    <details>
      <summary>
        {TITLES[kind]}
        {kind === 'discovery' && <code class="login-step-path"> {pathOf(url)}</code>}{' '}
        {result !== undefined && <span class={isExpected(step) && !error ? 'quiet' : 'tone-error'}>{result}</span>}
      </summary>
      <Facts
        rows={[
          [method === 'redirect' ? 'To' : method, <code class="connect-break">{url}</code>],
          ['At', <Time at={at} />],
          ['Problem', error],
          ['Challenge', challenge === undefined ? undefined : <code class="connect-break">{challenge}</code>],
          ...(sent ?? []).map(({ name, value }) => [name, <code class="connect-break">{value}</code>] as const),
        ]}
      />
      {request !== undefined && <JsonText text={request} label="What was sent" isPretty fileName="request.json" />}
      {answer !== undefined && <JsonText text={answer} label="The answer" isPretty fileName="answer.json" />}
    </details>
  )
}
