/**
 * Announces changes to every process within a second. Changes are numbered, so that a listener notices a missing one.
 *
 * Why `isFresh` guarantees one second: a change takes its number in the last statement of its transaction, under the lock of the
 * counter row, so numbers follow commit order. PostgreSQL delivers notifications in commit order (NOTIFY, "Notes"). If a process
 * asks for the number at its monotonic time `a` and gets `n`, every change committed before `a` has a number of at most `n`.
 * `provenAt` becomes `a` only once all notifications up to `n` were heard, or the cache was cleared. So a cache entry used while
 * `now - provenAt < 1 s` reflects every change committed a second ago. Slow or lost notifications only clear the cache.
 */
import { createHash } from 'node:crypto'
import type pg from 'pg'
import { connect } from '../../postgres/connecting.ts'
import { madeIn } from './migrations.ts'
import { queriesOn, type Queries, type Statement } from '../../postgres/pool.ts'
import { quoted, type PostgresSettings } from '../../postgres/settings.ts'

/** Without new proof, cached access expires after this time. */
const BOUND_MS = 1000

/** Poll interval on the listening connection, and without one. */
const ASK_MS = 250
const ASK_WITHOUT_MS = 500

/** Reconnect delay, doubled up to the second value. */
const FIRST_PAUSE_MS = 100
const LAST_PAUSE_MS = 1000

/** If the listening connection does not answer within this time, another connection is asked too. */
const PATIENCE_MS = 500

/** PostgreSQL refuses longer payloads (8000 bytes, with the number and its end). */
const MOST_BYTES = 7900

export interface ChangeFeedParts {
  readonly settings: PostgresSettings
  readonly pool: Queries
  /** The counter's name in `versions`, and part of the channel name. */
  readonly name: string
  readonly onChange: (about: unknown) => void
  /** Notifications were or may have been lost: anything may have changed. */
  readonly onLost: () => void
  /** Gets the schema's creation time with each number, in milliseconds since the epoch; null if it is unknown. */
  readonly onAnswer: (made: number | null) => void
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number
}

export interface ChangeFeed {
  start(): void
  isFresh(): boolean
  /** Must be the last statement of its transaction. A value that is too long is announced as null. */
  announce(queries: Queries, about: unknown): Promise<void>
  stop(): void
}

export function makeChangeFeed({ settings, pool, name, onChange, onLost, onAnswer, now }: ChangeFeedParts): ChangeFeed {
  const versions = `${quoted(settings.schema)}.versions`
  // Channel names are short, and all schemas of a database share them.
  const channel = `threadwarden_${name}_${createHash('sha256').update(settings.schema).digest('hex').slice(0, 16)}`
  const NUMBER: Statement = { text: `SELECT value, ${madeIn(settings.schema)} AS made FROM ${versions} WHERE name = $1` }
  const ANNOUNCE: Statement = {
    text: `WITH counted AS (UPDATE ${versions} SET value = value + 1 WHERE name = $1 RETURNING value)
      SELECT pg_notify($2, '[' || value || ',' || $3::text || ']') FROM counted`,
  }
  let session: pg.Client | null = null
  /** All changes up to this number were heard. */
  let heard = 0
  let awaited: { readonly number: number; readonly asked: number } | null = null
  let provenAt = -Infinity
  let stopped = false
  let asking: NodeJS.Timeout | undefined
  let connecting: Promise<void> | undefined

  const number = async (queries: Queries, counts: () => boolean): Promise<number> => {
    const [row] = await queries.query<{ value: number; made: number | null }>(NUMBER, [name])
    const made = row?.made ?? null
    if (counts()) onAnswer(made)
    if (row === undefined || made === null) throw new Error(`the count of ${name} is missing`)
    return row.value
  }
  const hear = (payload: string | undefined): void => {
    const [counted, about] = parsed(payload)
    if (counted > heard + 1) onLost()
    else onChange(about)
    if (counted === heard + 1) heard = counted
    if (awaited === null || heard < awaited.number) return
    provenAt = awaited.asked
    awaited = null
  }
  const take = (counted: number, asked: number, before: number): void => {
    if (counted > heard && awaited === null) {
      // The notification may be on its way: wait for it until the next answer.
      awaited = { number: counted, asked }
      return
    }
    // A lower number than before: another server with another history answers.
    if (counted > heard || counted < before || counted < (awaited?.number ?? 0)) {
      onLost()
      heard = counted
    }
    awaited = null
    provenAt = asked
  }
  const askElsewhere = async (on: pg.Client | null): Promise<void> => {
    const counts = (): boolean => !stopped && session === on
    const counted = await number(pool, counts).catch(() => heard)
    if (!counts() || counted === heard) return
    // Numbers heard since then are higher. The listening connection notices a number that went back.
    if (on !== null && counted < heard) return
    heard = counted
    onLost()
  }
  const ask = async (): Promise<void> => {
    const on = session
    if (on === null) return askElsewhere(null)
    const [asked, before] = [now(), heard]
    // Open streams learn of changes only from this feed.
    const late = setTimeout(() => void askElsewhere(on), PATIENCE_MS).unref()
    try {
      // An open connection that does not answer counts as gone, too.
      const counts = (): boolean => !stopped && on === session
      const counted = await number(queriesOn(on, settings, BOUND_MS), counts)
      if (counts()) take(counted, asked, before)
    } catch {
      void on.end()
    } finally {
      clearTimeout(late)
    }
  }
  const askAgain = async (): Promise<void> => {
    await ask()
    if (!stopped) asking = setTimeout(() => void askAgain(), session === null ? ASK_WITHOUT_MS : ASK_MS).unref()
  }
  const listen = async (): Promise<void> => {
    const client = await connect(settings)
    // Must not keep the process alive. The types lack this method.
    ;(client as unknown as { unref(): void }).unref()
    client.on('notification', (message) => {
      if (message.channel === channel) hear(message.payload)
    })
    client.once('end', () => {
      if (session !== client) return
      session = null
      provenAt = -Infinity
      if (!stopped) connecting = connectAgain()
    })
    ;[heard, awaited] = [0, null]
    try {
      await client.query(`LISTEN ${quoted(channel)}`)
      const counted = await number(queriesOn(client, settings), () => !stopped)
      heard = Math.max(heard, counted)
      if (stopped) throw new Error('stopped')
    } catch (error) {
      void client.end()
      throw error
    }
    session = client
    // Later notifications do not cover earlier cache entries.
    onLost()
  }
  const connectAgain = async (): Promise<void> => {
    for (let pause = FIRST_PAUSE_MS; !stopped; pause = Math.min(2 * pause, LAST_PAUSE_MS)) {
      try {
        await listen()
        return
      } catch {
        // Callers that need the server see its failure.
        await new Promise((resolve) => setTimeout(resolve, pause).unref())
      }
    }
  }

  return {
    start() {
      if (connecting !== undefined || stopped) return
      connecting = connectAgain()
      void askAgain()
    },
    isFresh: () => session !== null && now() - provenAt < BOUND_MS,
    async announce(queries, about) {
      const text = JSON.stringify(about)
      await queries.query(ANNOUNCE, [name, channel, Buffer.byteLength(text) > MOST_BYTES ? 'null' : text])
    },
    stop() {
      stopped = true
      clearTimeout(asking)
      const client = session
      session = null
      // Not awaited: a server that hangs does not answer.
      void client?.end()
    },
  }
}

/** A foreign notification has no number and counts as a lost one. */
function parsed(payload = ''): readonly [number: number, about: unknown] {
  try {
    const value: unknown = JSON.parse(payload)
    if (Array.isArray(value) && Number.isSafeInteger(value[0])) return [value[0] as number, value[1]]
  } catch {
    // A foreign notification.
  }
  return [Infinity, null]
}
