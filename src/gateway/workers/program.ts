/** The program of a worker process. Like the program itself, it sets V8's options before it imports anything that is large. */
import { setFlagsFromString } from 'node:v8'
import { NO_PRETENURING } from '../v8-options.ts'

setFlagsFromString(NO_PRETENURING)
await import('./worker.ts')
