import { onTestFinished } from 'vitest'
import { openLoginClient } from './login-caller.ts'

export { authorize, GATEWAY, remoteServer } from './login-caller.ts'

/** An OAuth client that ends with its test. */
export const startLoginClient = (...options: Parameters<typeof openLoginClient>) => {
  const opened = openLoginClient(...options)
  onTestFinished(opened.close)
  return opened
}
