/** What the log of a gateway has of level `warn` and above. */
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'

/** Counts them by their level and message. */
export async function warningsIn(logFile: string): Promise<Readonly<Record<string, number>>> {
  const counts: Record<string, number> = {}
  for await (const line of createInterface({ input: createReadStream(logFile), crlfDelay: Infinity })) {
    // Nearly all lines are those of requests.
    if (line.startsWith('{"level":"info"') || line.startsWith('{"level":"debug"')) continue
    const { level, msg } = JSON.parse(line) as { level: string; msg: string }
    const key = `${level}: ${msg}`
    counts[key] = (counts[key] ?? 0) + 1
  }
  return counts
}
