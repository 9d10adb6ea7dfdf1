/** Fetches Keycloak for the tests that run with it: `npx tsx test/peers/oauth/install-keycloak.ts`. */
import { installKeycloak } from './keycloak.ts'

const installed = await installKeycloak()
process.stdout.write(`${installed.kind === 'ready' ? `installed in ${installed.folder}` : installed.reason}\n`)
process.exitCode = installed.kind === 'ready' ? 0 : 1
