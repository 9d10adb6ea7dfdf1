import { useEffect, useState } from 'preact/hooks'
import { isObject, type JsonObject } from '../../mcp/messages.ts'
import { connection } from './connection.ts'

const DELAY_MS = 150
const MOST = 100

/** What `completion/complete` proposes for a value while the user types it. */
export const useCompletion = (
  ref: JsonObject,
  name: string,
  value: string,
  others: Readonly<Record<string, string>>,
  isActive: boolean,
): readonly string[] => {
  const [proposed, setProposed] = useState<readonly string[]>([])
  const about = connection.value?.about
  const canComplete = isActive && isObject(about?.capabilities.completions)
  const refKey = JSON.stringify(ref)
  const othersKey = JSON.stringify(others)
  useEffect(() => {
    if (!canComplete) return
    let isCurrent = true
    const timer = setTimeout(() => {
      const filled = Object.fromEntries(
        Object.entries(JSON.parse(othersKey) as Record<string, string>).filter(
          ([key, text]) => key !== name && text !== '',
        ),
      )
      const context = Object.keys(filled).length > 0 ? { context: { arguments: filled } } : {}
      const params = { ref: JSON.parse(refKey) as JsonObject, argument: { name, value }, ...context }
      connection
        .peek()
        ?.client.request('completion/complete', params)
        .then(
          ({ result }) => isCurrent && setProposed(readValues(result)),
          () => isCurrent && setProposed([]), // the server has nothing to propose for this one
        )
    }, DELAY_MS)
    return () => {
      isCurrent = false
      clearTimeout(timer)
    }
  }, [refKey, name, value, othersKey, canComplete])
  return proposed
}

const readValues = ({ completion }: JsonObject): readonly string[] => {
  const values = isObject(completion) ? completion.values : undefined
  return Array.isArray(values) ? values.filter(each => typeof each === 'string').slice(0, MOST) : []
}
