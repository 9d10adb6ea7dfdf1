/** What calls of the demo server change for everybody. */
export interface DemoState {
  updates: number // of the watched resource
  readonly extras: { tool: boolean; prompt: boolean; resource: boolean } // what is listed just now
}

export const createState = (): DemoState => ({
  updates: 0,
  extras: { tool: false, prompt: false, resource: false },
})
