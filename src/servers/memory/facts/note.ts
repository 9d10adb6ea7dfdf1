/** The name of the entity that sentences about nothing in particular point to, one in each group. */
export const NOTE = 'Note'

/** How that entity is told from one that somebody called Note. */
export const NOTE_LABELS: readonly string[] = ['Entity', 'Note']
