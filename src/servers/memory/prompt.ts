import { type Prompt, prompt } from '../define/prompts.ts'

/** What every client is told of this server when it connects. */
export const INSTRUCTIONS = `A memory that outlasts the conversation: episodes (what was told, word for word), entities (who and what they are about) and facts (statements with the time they hold), kept apart by group.

Before you start a task, search: search_nodes for preferences, procedures and requirements (entity_types), search_memory_facts for what is known about the matter. Ask with the words that matter: names, subjects, dates.
When you learn something worth keeping, add it at once with add_memory: a descriptive name, whole sentences, reference_time if it happened earlier. Summarise; do not paste transcripts. You know what the text means: state it in entities and facts, and when something has changed, name the outdated facts in supersedes.
Store only what is new. What was added is found by the very next search; nothing needs a key or a model.
Delete, clear_graph and forget have no way back: ask the user first.`

const GUIDE = `How to use memory in this task.

1. Search first. search_nodes with entity_types ["Preference"], then ["Procedure"] and ["Requirement"], for the subject of the task; search_memory_facts for what is known about the people and things in it. Use max_nodes and max_facts to see more, valid_at_after and valid_at_before for a time, center_node_uuid to stay near an entity.
2. Follow what you find: preferences and procedures are instructions of the user. A fact with invalid_at no longer holds; the newest valid one counts.
3. While you work, add what the user states: requirements and preferences at once, each as an episode of its own with facts. Give source "message" for "name: text" lines and "json" for structured data.
4. When something changes, add the new fact with supersedes. Do not delete what was true once.
5. At the end, add one episode that says what was decided and why, in a few sentences that somebody who was not there understands.`

/** The prompts of the memory server. */
export const memoryPrompts = (): readonly Prompt[] => [
  prompt({
    name: 'use_memory',
    title: 'Use memory well',
    description: 'Tells an agent how to search memory before a task, and what to add to it during and after',
    arguments: { task: { description: 'What you are about to do' } },
    get: ({ task }) => (task ? `${GUIDE}\n\nThe task: ${task}` : GUIDE),
  }),
]
