/** Something that runs until it is stopped. */
export interface Station<Value> {
  readonly value: Value
  stop(): Promise<void>
}

/** A station that is started by the first cell that needs it. */
export interface LazyStation<Value> {
  get(folder?: string): Promise<Value>
  stop(): Promise<void>
}

/** Starts a station once, when it is first asked for; what it is started with is the folder of an installed peer. */
export const lazyStation = <Value>(start: (folder: string) => Promise<Station<Value>>): LazyStation<Value> => {
  let starting: Promise<Station<Value>> | undefined
  return {
    get: async (folder = '') => {
      starting ??= start(folder)
      return (await starting).value
    },
    stop: async () => {
      const started = await starting?.catch(() => undefined)
      await started?.stop()
    },
  }
}
