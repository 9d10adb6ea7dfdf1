import { Refusal } from '../refusal.ts'

/** Most characters of what somebody gives a name, and of what he says about it. */
export const LONGEST = { name: 500, sentence: 10_000, uuid: 200 } as const

/** Refuses what is too long for what it is; `instead` says where it could go. */
export const refuseLong = (what: string, given: string | undefined, most: number, instead = ''): void => {
  if (given !== undefined && given.length > most)
    throw new Refusal(`${what} has ${given.length} characters; at most ${most} fit${instead}`)
}
