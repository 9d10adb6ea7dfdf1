import { Json, type PlainObject } from '../../wire/json/json.ts'
import { failure } from './failures.ts'

/** What a client may be able to do for a server. */
export type Ability = 'sampling' | 'sampling.tools' | 'elicitation' | 'elicitation.url' | 'roots'

interface Row {
  readonly needs: Readonly<Record<string, PlainObject>> // as a client declares it
  readonly isIn: (capabilities: Json) => boolean
}

const hasMember =
  (...path: string[]) =>
  (capabilities: Json): boolean =>
    capabilities.at(...path)?.isObject === true

const ABILITIES: Readonly<Record<Ability, Row>> = {
  sampling: { needs: { sampling: {} }, isIn: hasMember('sampling') },
  'sampling.tools': { needs: { sampling: { tools: {} } }, isIn: hasMember('sampling', 'tools') },
  elicitation: {
    needs: { elicitation: { form: {} } },
    isIn: capabilities => {
      const modes = capabilities.get('elicitation')
      return modes?.isObject === true && (modes.has('form') || !modes.has('url')) // a bare {} means forms
    },
  },
  'elicitation.url': { needs: { elicitation: { url: {} } }, isIn: hasMember('elicitation', 'url') },
  roots: { needs: { roots: {} }, isIn: hasMember('roots') },
}

/** Whether the declared capabilities of a client include an ability. */
export const isAble = (capabilities: Json, ability: Ability): boolean => ABILITIES[ability].isIn(capabilities)

/** Throws the error that names what the client would have to declare. */
export const requireAbilities = (capabilities: Json, abilities: readonly Ability[]): void => {
  const missing = abilities.filter(ability => !isAble(capabilities, ability))
  if (missing.length === 0) return
  const required: Record<string, PlainObject> = {}
  for (const ability of missing)
    for (const [feature, modes] of Object.entries(ABILITIES[ability].needs))
      required[feature] = { ...required[feature], ...modes }
  throw failure(
    'missingCapability',
    `This needs a client that declares ${missing.join(' and ')}`,
    Json.of({ requiredCapabilities: required }),
  )
}
