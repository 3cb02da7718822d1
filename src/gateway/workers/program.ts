/** The program of a worker process. Like the program itself, it sets V8's options before it imports anything that is large. */
import { setV8Options } from '../v8-options.ts'

setV8Options()
await import('./worker.ts')
