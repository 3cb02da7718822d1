/** What is used of pino-roll 4, which brings no types: a SonicBoom stream that goes on to the next file by itself. */
declare module 'pino-roll' {
  import type { EventEmitter } from 'node:events'

  /** Emits `ready`, `write` (bytes taken), `error` and `close`. */
  export interface RollingFile extends EventEmitter {
    readonly fd: number
    readonly file: string
    write(text: string): boolean
    end(): void
    /** Closes it with what is left unwritten. */
    destroy(): void
  }

  export default function roll(options: {
    readonly file: string
    /** With `b` behind it, in bytes. */
    readonly size: string
    readonly limit: { readonly count: number; readonly removeOtherLogFiles: boolean }
    readonly mkdir: boolean
    readonly mode: number
  }): Promise<RollingFile>
}
