import { watchersMissNothing } from './watchers.ts'

watchersMissNothing(100, 20)
