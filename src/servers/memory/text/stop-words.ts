const LIST = `
a about above after again against all also am an and any are aren as at be because been before being below between both
but by can cannot could couldn d did didn do does doesn doing don done down during each else ever few for from further
get gets getting give given gives go goes going gone got had hadn has hasn have haven having he her here hers herself
him himself his how however i if in into is isn it its itself just let like ll m made make makes many may me might more
most much must my myself no nor not now of off often on once one only onto or other our ours ourselves out over own per
please re really s said same say says shall shan she should shouldn since so some such t take tell than that the their
theirs them themselves then there these they thing things this those though through to together too under until up upon
us ve very was wasn way we were weren what when where whether which while who whom whose why will with within without
won would wouldn yes yet you your yours yourself yourselves
`

const STOP_WORDS: ReadonlySet<string> = new Set(LIST.trim().split(/\s+/))

/** Whether a folded word says nothing about what an English text is about. */
export const isStopWord = (word: string): boolean => STOP_WORDS.has(word)
