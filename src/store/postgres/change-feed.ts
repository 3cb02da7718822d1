/**
 * Announces changes to every process within a second. Each has its number, so a listener knows whether it has heard all.
 *
 * Why `isFresh` promises one second: a change counts itself as the last statement of its transaction, under the lock of the
 * counting row. So changes are committed in the order of their numbers. PostgreSQL delivers their notifications in the order of
 * the commits (NOTIFY, "Notes"). A process asks for the number repeatedly. Let it ask at the time `a`, on its own monotonic
 * clock, and get `n`: each change committed before `a` has a number of at most `n`. `provenAt` becomes `a` only once the
 * notification of `n` was heard with none missing before it, or once everything was given up as lost. In both cases
 * the memory of each change before `a` is gone. So a memory used only while `now - provenAt < 1 s` is
 * never wrong about a change committed a second ago or earlier. The proof does not assume that notifications are
 * fast, or that they arrive. Where a pooler or a broken connection loses them, the numbers differ, and everything is given up.
 */
import { createHash } from 'node:crypto'
import type pg from 'pg'
import { connect } from '../../postgres/connecting.ts'
import { madeIn } from './migrations.ts'
import { queriesOn, type Queries, type Statement } from '../../postgres/pool.ts'
import { quoted, type PostgresSettings } from '../../postgres/settings.ts'

/** How long remembered access may be used without new proof. */
const BOUND_MS = 1000

/** Time between two questions: on the listening connection, and without one. */
const ASK_MS = 250
const ASK_WITHOUT_MS = 500

/** Time between two attempts to connect: doubled up to the second value. */
const FIRST_PAUSE_MS = 100
const LAST_PAUSE_MS = 1000

/** After this time without an answer of the listening connection, the question is also asked elsewhere. */
const PATIENCE_MS = 500

/** PostgreSQL refuses longer payloads (8000 bytes, with the number and its end). */
const MOST_BYTES = 7900

export interface ChangeFeedParts {
  readonly settings: PostgresSettings
  readonly pool: Queries
  /** The name of the number in `versions`, and part of the channel name. */
  readonly name: string
  readonly onChange: (about: unknown) => void
  /** Anything may have changed: notifications were lost, or may have been. */
  readonly onLost: () => void
  /** Gets with each number when its schema was made, in milliseconds since the epoch; null: it does not say. */
  readonly onAnswer: (made: number | null) => void
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number
}

export interface ChangeFeed {
  start(): void
  /** True if this process has heard of every change that was committed until a second ago. */
  isFresh(): boolean
  /** Counts and announces a change. It must be the last statement of its transaction. A too long value is announced as null. */
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
  /** The last number that was heard together with all before it. */
  let heard = 0
  let awaited: { readonly number: number; readonly asked: number } | null = null
  let provenAt = -Infinity
  let stopped = false
  let asking: NodeJS.Timeout | undefined
  let connecting: Promise<void> | undefined

  /** @param counts whether the answer is still of use when it comes */
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
      // The notification may be on its way: it has until the next answer.
      awaited = { number: counted, asked }
      return
    }
    // A lower number than before: another server answers, with another history.
    if (counted > heard || counted < before || counted < (awaited?.number ?? 0)) {
      onLost()
      heard = counted
    }
    awaited = null
    provenAt = asked
  }
  /** Asks another connection whether anything was missed: the listening one is gone or does not answer. */
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
    // It must not keep the process alive. The types lack this method.
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
    // Later notifications do not cover what was remembered until now.
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

/** The number of a change and its payload. A foreign notification has no number and counts as a lost one. */
function parsed(payload = ''): readonly [number: number, about: unknown] {
  try {
    const value: unknown = JSON.parse(payload)
    if (Array.isArray(value) && Number.isSafeInteger(value[0])) return [value[0] as number, value[1]]
  } catch {
    // As above.
  }
  return [Infinity, null]
}
