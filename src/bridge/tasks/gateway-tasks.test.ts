import { expect, onTestFinished, test, vi } from 'vitest'
import { TASK_LIMITS } from '../../protocol/tasks.ts'
import { MemoryCluster } from '../../stores/state/memory-state.ts'
import { SILENT } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'
import { GatewayTasks } from './gateway-tasks.ts'

const ORIGIN = {
  ...{ server: 'far', tool: 'work', workspace: 'default', principal: 'ann' },
  ...{ revision: '2026-07-28' as const, capabilities: Json.empty },
}

const join = (cluster: MemoryCluster) => {
  const store = cluster.join()
  const tasks = new GatewayTasks({ store, log: SILENT, resume: () => false })
  onTestFinished(() => tasks.close())
  const finish = async (): Promise<string> => {
    const task = await tasks.create(ORIGIN, 60_000)
    task.receive({ kind: 'result', result: Json.of({ content: [] }) })
    return task.id
  }
  return { store, tasks, finish }
}

test('results that are taken over from another replica do not replace newer ones', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const cluster = new MemoryCluster()
  const [first, second] = [join(cluster), join(cluster)]
  const share = TASK_LIMITS.perPrincipal * 0.6
  for (let at = 0; at < share; at++) await first.finish()
  vi.setSystemTime(Date.now() + 1000)
  const newer: string[] = []
  for (let at = 0; at < share; at++) newer.push(await second.finish())
  cluster.kill(first.store.members.self)
  await vi.waitFor(async () => expect(await second.tasks.list()).toHaveLength(TASK_LIMITS.perPrincipal))
  for (const id of newer) expect(await second.tasks.find(id)).toBeDefined()
})
