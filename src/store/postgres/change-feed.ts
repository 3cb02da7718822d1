/**
 * Changes, told to every process within a second and each with its number, so that whoever listens knows whether it has heard
 * of all of them.
 *
 * Why `isFresh` is a promise of one second: a change counts itself as the last statement of its transaction, under the lock of
 * the row that counts. So changes are committed in the order of their numbers, and PostgreSQL delivers their notifications in
 * the order of the commits (NOTIFY, "Notes"). A process asks for the number again and again. Let it have asked at the time
 * `a`, on its own monotonic clock, and been answered `n`: whatever was committed before `a` has a number of at most `n`.
 * `provenAt` becomes `a` only once the notification of `n` has been heard, with none missing before it, or once everything
 * was given up for lost. In both cases what was remembered of each change before `a` is gone. A memory that is used only
 * while `now - provenAt < 1 s` is therefore never wrong about a change that was committed a second ago or earlier. Nothing is
 * assumed of how fast notifications are, or that they come at all: where they are lost, in a pooler or with a connection, the
 * numbers differ, and everything is given up for lost.
 */
import { createHash } from 'node:crypto'
import type pg from 'pg'
import { connect } from '../../postgres/connecting.ts'
import { madeIn } from './migrations.ts'
import { queriesOn, type Queries, type Statement } from '../../postgres/pool.ts'
import { quoted, type PostgresSettings } from '../../postgres/settings.ts'

/** How long what is remembered may be used without being proven again. */
const BOUND_MS = 1000

/** Time between two questions: on the connection that listens, and while there is none. */
const ASK_MS = 250
const ASK_WITHOUT_MS = 500

/** Time between two attempts to connect: doubled until the second. */
const FIRST_PAUSE_MS = 100
const LAST_PAUSE_MS = 1000

/** A listening connection that has not answered for so long may be of no use: what it says is asked elsewhere as well. */
const PATIENCE_MS = 500

/** Longer payloads are refused by PostgreSQL (8000 bytes, with the number and its end). */
const MOST_BYTES = 7900

export interface ChangeFeedParts {
  readonly settings: PostgresSettings
  /** Where queries run while the listening connection is gone. */
  readonly pool: Queries
  /** The name of the number in the table of versions, and part of the channel's. */
  readonly name: string
  /** Gets what a change has told. */
  readonly onChange: (about: unknown) => void
  /** Anything may have changed: notifications were or may have been lost. */
  readonly onLost: () => void
  /** Told with each number of when the schema was made that it is from, in milliseconds since the epoch; null: it does not say. */
  readonly onAnswer: (made: number | null) => void
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number
}

export interface ChangeFeed {
  start(): void
  /** True if everything that was committed until a second ago has been told. */
  isFresh(): boolean
  /** Counts and tells a change; it has to be the last statement of its transaction. What is too long to tell is told as null. */
  announce(queries: Queries, about: unknown): Promise<void>
  stop(): void
}

/** Makes a feed that does not listen yet. */
export function makeChangeFeed({ settings, pool, name, onChange, onLost, onAnswer, now }: ChangeFeedParts): ChangeFeed {
  const versions = `${quoted(settings.schema)}.versions`
  // Names of channels are short, and all of a database share them.
  const channel = `threadwarden_${name}_${createHash('sha256').update(settings.schema).digest('hex').slice(0, 16)}`
  const NUMBER: Statement = { text: `SELECT value, ${madeIn(settings.schema)} AS made FROM ${versions} WHERE name = $1` }
  const ANNOUNCE: Statement = {
    text: `WITH counted AS (UPDATE ${versions} SET value = value + 1 WHERE name = $1 RETURNING value)
      SELECT pg_notify($2, '[' || value || ',' || $3::text || ']') FROM counted`,
  }
  let session: pg.Client | null = null
  /** The last number of which the change was heard, with all before it. */
  let heard = 0
  /** A number that was told by a question, and of which nothing was heard yet. */
  let awaited: { readonly number: number; readonly asked: number } | null = null
  let provenAt = -Infinity
  let stopped = false
  let asking: NodeJS.Timeout | undefined
  let connecting: Promise<void> | undefined

  /** Asks for the number. @param counts whether the answer is still of use when it comes */
  const number = async (queries: Queries, counts: () => boolean): Promise<number> => {
    const [row] = await queries.query<{ value: number; made: number | null }>(NUMBER, [name])
    const made = row?.made ?? null
    if (counts()) onAnswer(made)
    if (row === undefined || made === null) throw new Error(`the version of ${name} vanished`)
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
  /** Takes in an answer of the listening connection. */
  const take = (counted: number, asked: number, before: number): void => {
    if (counted > heard && awaited === null) {
      // The notification may be on its way: it has until the next answer.
      awaited = { number: counted, asked }
      return
    }
    // Fewer than were heard of before: another server answers, with another past.
    if (counted > heard || counted < before || counted < (awaited?.number ?? 0)) {
      onLost()
      heard = counted
    }
    awaited = null
    provenAt = asked
  }
  /** Asks whether anything was missed, on another connection than the one that listens, which is gone or does not answer. */
  const askElsewhere = async (on: pg.Client | null): Promise<void> => {
    const counts = (): boolean => !stopped && session === on
    const counted = await number(pool, counts).catch(() => heard)
    if (!counts() || counted === heard) return
    // What was heard since then is more; a number that went back is seen by the connection that listens.
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
      // A connection that stands and says nothing is gone, too.
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
    // It keeps no process alive. The types don't know the method.
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
    // What was remembered until now is not covered by what is heard from now on.
    onLost()
  }
  const connectAgain = async (): Promise<void> => {
    for (let pause = FIRST_PAUSE_MS; !stopped; pause = Math.min(2 * pause, LAST_PAUSE_MS)) {
      try {
        await listen()
        return
      } catch {
        // Whoever needs the server is told by its failure.
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
      // A server that hangs does not answer a goodbye.
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
