import { watchersMissNothing } from './watchers.ts'

watchersMissNothing(20, 1) // more of both: watchers.long.test.ts
