import { whyNoChromium } from './chromium.ts'

/** Says once that no browser is there; the tests of the console are skipped then. */
export default (): void => {
  const why = whyNoChromium()
  if (why) console.warn(`The tests of the console in a browser are skipped: ${why}.`)
}
