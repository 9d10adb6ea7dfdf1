import type { EmbeddingSettings, ServerConfig, WorkspaceConfig } from '../config/snapshot.ts'
import type { Log } from '../telemetry/log.ts'
import type { RankByMeaning } from '../workspace/budget/tool-meaning.ts'
import type { ToolVectors } from './tool-vectors.ts'

interface ToolEmbeddingsOptions {
  readonly serverOf: (name: string) => ServerConfig | undefined // of the current configuration
  readonly log: Log
}

/** Ranks tools by the models that memories use, for workspaces whose budget names one. */
export interface ToolEmbeddings {
  /** Undefined: words alone rank the tools of this workspace. */
  of(config: WorkspaceConfig): RankByMeaning | undefined
  close(): Promise<void>
}

const MOST_MODELS = 4 // a model that the configuration names no more is closed in the end

export const createToolEmbeddings = ({ serverOf, log }: ToolEmbeddingsOptions): ToolEmbeddings => {
  const models = new Map<string, Promise<ToolVectors>>() // by their settings

  const close = async (opened: Promise<ToolVectors>): Promise<void> => (await opened).close()

  /** Loaded by the first search: most gateways never need it. */
  const open = (settings: EmbeddingSettings): Promise<ToolVectors> => {
    const key = JSON.stringify([settings.url, settings.key, settings.model, settings.dimensions])
    const opened =
      models.get(key) ?? import('./tool-vectors.ts').then(({ ToolVectors }) => new ToolVectors(settings, log))
    models.delete(key)
    models.set(key, opened) // the last one used is the last
    for (const [oldest, model] of models) {
      if (models.size <= MOST_MODELS) break
      models.delete(oldest)
      void close(model)
    }
    return opened
  }

  return {
    of: ({ budget }) => {
      const memory = budget?.embeddings
      if (memory === undefined) return undefined
      return async (query, tools) => {
        const server = serverOf(memory)
        const settings = server?.kind === 'builtin' && server.builtin === 'memory' ? server.embeddings : undefined
        return settings && (await open(settings)).rank(query, tools)
      }
    },
    close: async () => void (await Promise.all([...models.values()].map(close))),
  }
}
