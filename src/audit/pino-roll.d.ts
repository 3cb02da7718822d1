/** Types for the used part of pino-roll 4, which has none: a SonicBoom stream that switches to the next file on its own. */
declare module 'pino-roll' {
  import type { EventEmitter } from 'node:events'

  /** Emits `ready`, `write` (bytes taken), `error` and `close`. */
  export interface RollingFile extends EventEmitter {
    readonly fd: number
    readonly file: string
    write(text: string): boolean
    end(): void
    /** Closes the stream; the remaining bytes stay unwritten. */
    destroy(): void
  }

  export default function roll(options: {
    readonly file: string
    /** Bytes, with the suffix `b`. */
    readonly size: string
    readonly limit: { readonly count: number; readonly removeOtherLogFiles: boolean }
    readonly mkdir: boolean
    readonly mode: number
  }): Promise<RollingFile>
}
