/** What the gateway says of itself, read from its metrics (docs/reference/metrics.md). */
import { memoryOf } from '../bench/figures.ts'

/** Figures of one moment. Those of the process are sums over its workers. */
export interface Figures {
  /** Bytes that are resident; null where the system doesn't tell it. */
  readonly rss: number | null
  /** Bytes of the JavaScript heap that are used, and of what hangs on it outside: buffers above all. */
  readonly heap: number
  /** Open file descriptors; null where the system doesn't tell it. */
  readonly files: number | null
  /** What keeps the event loop alive: sockets, timers, requests. */
  readonly resources: number
  readonly openStreams: number
  /** Changes of the configuration, by what became of them. */
  readonly reloaded: number
  readonly refused: number
  /** Whether the files can be put in force. */
  readonly isReloadFine: boolean
}

/** Reads them. @param pid of its first process @param health the address of its health listener */
export async function figuresOf(pid: number, health: string): Promise<Figures> {
  const text = await (await fetch(`${health}/metrics`)).text()
  const figure = (name: string): number | null => {
    const lines = text.split('\n').filter((line) => line.startsWith(`${name} `))
    return lines.length === 0 ? null : lines.reduce((sum, line) => sum + Number(line.slice(name.length + 1)), 0)
  }
  const counted = (name: string): number => figure(name) ?? 0
  return {
    rss: memoryOf(pid),
    heap: counted('nodejs_heap_size_used_bytes') + counted('nodejs_external_memory_bytes'),
    files: figure('process_open_fds'),
    resources: counted('nodejs_active_resources_total'),
    openStreams: counted('threadwarden_open_streams'),
    reloaded: counted('threadwarden_config_reloads_total{outcome="reloaded"}'),
    refused: counted('threadwarden_config_reloads_total{outcome="refused"}'),
    isReloadFine: counted('threadwarden_config_last_reload_successful') === 1,
  }
}
