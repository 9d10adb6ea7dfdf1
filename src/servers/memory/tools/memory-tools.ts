import type { Tool } from '../../define/tools.ts'
import { addMemory, addTriplet, writeMemory } from './add.ts'
import { clearGraph, deleteEdge, deleteEpisodeTool, forget } from './delete.ts'
import { buildCommunities, exportMemory, importMemory, summarizeSaga } from './maintain.ts'
import { getEdge, getEpisodeEntities, getEpisodes, getJobs, getStatus } from './read.ts'
import { searchEpisodes, searchMemoryFacts, searchNodes } from './search.ts'
import type { MemoryTool, ToolContext } from './tool.ts'

/** The tools of the contract in its order, then ours. */
const TOOLS: readonly MemoryTool[] = [
  addMemory,
  searchNodes,
  searchMemoryFacts,
  deleteEdge,
  deleteEpisodeTool,
  getEdge,
  getEpisodes,
  summarizeSaga,
  buildCommunities,
  addTriplet,
  getEpisodeEntities,
  clearGraph,
  getStatus,
  searchEpisodes,
  writeMemory,
  getJobs,
  exportMemory,
  importMemory,
  forget,
]

/** Every memory tool, bound to one tenant. */
export const memoryTools = (context: ToolContext): readonly Tool[] => TOOLS.map(tool => tool(context))
