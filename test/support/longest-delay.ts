import type { CDPSession, Page } from 'playwright-core'

/** From an input to the next paint, in milliseconds: what users take for at once. */
export const RESPONSIVE_MS = 100

interface TraceEvent {
  readonly name: string
  readonly ph: string
  readonly ts: number // microseconds, as the others
  readonly dur?: number
  readonly tdur?: number // CPU time of the thread
  readonly pid: number
  readonly tid: number
  readonly args: { readonly data?: { readonly type?: string } }
}

const CATEGORIES = ['devtools.timeline', 'disabled-by-default-devtools.timeline']
const INPUTS = new Set(['keydown', 'pointerdown', 'pointerup', 'click', 'wheel'])

/**
 * The longest time from an input to the next paint while `inputs` run, in milliseconds: the CPU time that the page's main thread
 * needed from the task that ran when the input arrived to the end of the frame that shows its effect. Other processes of a
 * busy machine make no difference.
 */
export const longestDelay = async (page: Page, inputs: readonly (() => Promise<unknown>)[]): Promise<number> => {
  const session = await page.context().newCDPSession(page)
  const events = await trace(session, async () => {
    for (const input of inputs) await input()
    await page.evaluate(
      'new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))',
    )
  })
  await session.detach()
  return longestIn(events)
}

const trace = async (session: CDPSession, act: () => Promise<void>): Promise<readonly TraceEvent[]> => {
  const events: TraceEvent[] = []
  session.on('Tracing.dataCollected', ({ value }) => events.push(...(value as unknown as TraceEvent[])))
  await session.send('Tracing.start', {
    traceConfig: { includedCategories: CATEGORIES, excludedCategories: ['*'] },
  } as never)
  await act()
  const complete = new Promise<void>(done => session.once('Tracing.tracingComplete', () => done()))
  await session.send('Tracing.end')
  await complete
  return events
}

const longestIn = (events: readonly TraceEvent[]): number => {
  const isInput = ({ args }: TraceEvent): boolean => INPUTS.has(args.data?.type ?? '')
  const dispatches = events.filter(event => event.name === 'EventDispatch' && isInput(event)).sort(byTime)
  const [first] = dispatches
  if (!first) throw new Error('the page has had no input')
  const ofPage = events.filter(({ pid, tid }) => pid === first.pid && tid === first.tid).sort(byTime)
  const tasks = ofPage.filter(({ name, ph }) => name === 'RunTask' && ph === 'X')
  const commits = ofPage.filter(({ name }) => name === 'Commit')
  const arrivals = events.filter(event => event.name === 'EventTiming' && event.ph === 'b' && isInput(event))
  const delays = arrivals.map(({ ts: arrived, args }) => {
    const handled = dispatches.find(({ ts, args: own }) => ts >= arrived && own.data?.type === args.data?.type)
    const from = handled?.ts ?? arrived
    const until = commits.find(({ ts }) => ts >= from)?.ts ?? from // nothing changed: it ends with its handlers
    const within = tasks.filter(({ ts, dur = 0 }) => ts + dur > arrived && ts <= until)
    return within.reduce((sum, { tdur = 0 }) => sum + tdur, 0) / 1000
  })
  if (delays.length === 0) throw new Error(`the browser has timed none of ${dispatches.length} inputs`)
  return Math.max(...delays)
}

const byTime = (a: TraceEvent, b: TraceEvent): number => a.ts - b.ts

/** Presses of keys, one after the other. */
export const pressesOf = (page: Page, keys: readonly string[]): (() => Promise<void>)[] =>
  keys.map(key => () => page.keyboard.press(key))
