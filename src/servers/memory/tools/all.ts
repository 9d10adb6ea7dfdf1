import type { Tool } from '../../define/tools.ts'
import type { Desk } from '../desk.ts'
import type { Remember } from '../remember.ts'
import { addingTools } from './adding.ts'
import { carryingTools } from './carrying.ts'
import { deletingTools } from './deleting.ts'
import { groupingTools } from './grouping.ts'
import { readingTools } from './reading.ts'
import { type Embed, searchingTools } from './searching.ts'

/** Every tool: those of the contract in its order, then ours. */
export const memoryTools = (desk: Desk, remember: Remember, embed: Embed): readonly Tool[] => {
  const { addMemory, writeMemory, addTriplet } = addingTools(desk, remember)
  const { searchNodes, searchMemoryFacts } = searchingTools(desk, embed)
  const { getEdge, getEpisodes, getEpisodeEntities, getStatus, getJobs } = readingTools(desk)
  const { deleteEdge, deleteEpisode, clearGraph, forget } = deletingTools(desk)
  const { summarizeSaga, buildCommunities } = groupingTools(desk)
  const { exportMemory, importMemory } = carryingTools(desk)
  return [
    addMemory,
    searchNodes,
    searchMemoryFacts,
    deleteEdge,
    deleteEpisode,
    getEdge,
    getEpisodes,
    summarizeSaga,
    buildCommunities,
    addTriplet,
    getEpisodeEntities,
    clearGraph,
    getStatus,
    writeMemory,
    getJobs,
    exportMemory,
    importMemory,
    forget,
  ]
}
