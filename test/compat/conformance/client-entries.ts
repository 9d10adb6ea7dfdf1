import type { ScenarioContext } from './client-scripts.ts'

type OAuthOf = (context: ScenarioContext) => object

const client = ({ client_id, client_secret }: ScenarioContext): object => ({
  clientId: client_id,
  ...(client_secret !== undefined && { clientSecret: client_secret }),
})

/** What a user would write under `oauth`, where the server alone does not tell enough. */
const OAUTH: Readonly<Record<string, OAuthOf>> = {
  'auth/basic-cimd': () => ({ clientMetadataUrl: 'https://conformance-test.local/client-metadata.json' }),
  'auth/pre-registration': client,
  'auth/client-credentials-basic': context => ({ grant: 'client_credentials', ...client(context) }),
  'auth/client-credentials-jwt': context => ({
    grant: 'client_credentials',
    ...client(context),
    privateKey: context.private_key_pem,
  }),
  'auth/wif-jwt-bearer': context => ({ grant: 'jwt_bearer', ...client(context), assertion: context.valid_jwt }),
  'auth/enterprise-managed-authorization': context => ({ grant: 'id_jag', idp: 'corp', ...client(context) }),
}

/** What the gateway's configuration says about the suite's server. */
export const entryOf = (scenario: string, url: string, context: ScenarioContext): object => {
  const oauth = OAUTH[scenario]?.(context)
  return { url, ...(oauth && { oauth }) }
}
