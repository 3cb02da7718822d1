/** Holds a source until all of it is read: only then are disputed threads known. Memory does not grow with the lines. */
import Database from 'better-sqlite3'
import { SourceFault } from './problem.ts'
import type { Entry, Row, ThreadFacts } from './entry.ts'
import type { ThreadKey } from '../../store/port/thread.ts'

export interface Rival extends ThreadKey {
  readonly line: number
  readonly owner: string
}

export interface StagingPage {
  /** For each thread on whose owner all lines agree, the first valid line. */
  readonly rows: readonly Row[]
  readonly disputed: readonly ThreadKey[]
  /** Lines that repeat what another line says. */
  readonly repeated: number
  /** The key to ask the next page after; null at the end. */
  readonly next: ThreadKey | null
}

export interface StagingTable {
  /** Adds a line. An invalid line counts only if it gives a thread to another user than another line does. */
  add(entry: Entry): void
  /** Ends the adding. @returns the number of threads */
  seal(): number
  page(after: ThreadKey | null, limit: number): StagingPage
  /** The owner of a thread: null if no line names the thread, `disputed` if the lines disagree. */
  ownerOf(key: ThreadKey): Row | 'disputed' | null
  rivals(key: ThreadKey): IterableIterator<Rival>
  close(): void
}

const LINES = `
  CREATE TABLE lines (
    id INTEGER PRIMARY KEY,
    line INTEGER NOT NULL,
    scope TEXT NOT NULL COLLATE BINARY,
    threadId TEXT NOT NULL COLLATE BINARY,
    owner TEXT NOT NULL COLLATE BINARY,
    takeable INTEGER NOT NULL,
    agentId TEXT,
    name TEXT,
    archived INTEGER,
    createdAt INTEGER,
    lastUsedAt INTEGER,
    deletedAt INTEGER
  ) STRICT;
`

type Line = Omit<Row, 'kind' | 'facts'> & Omit<ThreadFacts, 'archived'> & { readonly archived: number }

interface Group extends ThreadKey {
  readonly agreed: number
  /** Null if no line is valid. */
  readonly first: number | null
  readonly takeable: number
}

/** SQLite makes the file with mode 0600 and unlinks it at once, in SQLITE_TMPDIR or TMPDIR: no other process can open it. */
export function makeStagingTable(): StagingTable {
  const database = new Database('')
  const guard = <T>(step: () => T): T => {
    try {
      return step()
    } catch (error) {
      if (!(error instanceof Database.SqliteError)) throw error
      throw new SourceFault(`the temporary file failed (${error.message}): set SQLITE_TMPDIR to another folder`)
    }
  }
  // None of the data has to survive the process.
  for (const setting of ['journal_mode = OFF', 'synchronous = OFF', 'cache_size = -65536']) database.pragma(setting)
  database.exec(LINES)
  const insert = database.prepare<object>(
    `INSERT INTO lines (line, scope, threadId, owner, takeable, agentId, name, archived, createdAt, lastUsedAt, deletedAt)
     VALUES (:line, :scope, :threadId, :owner, :takeable, :agentId, :name, :archived, :createdAt, :lastUsedAt, :deletedAt)`,
  )
  database.exec('BEGIN')

  const groups = (where: string): string =>
    `SELECT scope, threadId, MIN(owner) = MAX(owner) AS agreed, MIN(CASE takeable WHEN 1 THEN id END) AS first, SUM(takeable) AS takeable
     FROM lines WHERE ${where} GROUP BY scope, threadId ORDER BY scope, threadId`
  let sealed: ReturnType<typeof statements> | undefined
  const statements = () => ({
    first: database.prepare<[number], Group>(`${groups('TRUE')} LIMIT ?`),
    page: database.prepare<[string, string, number], Group>(`${groups('(scope, threadId) > (?, ?)')} LIMIT ?`),
    one: database.prepare<[string, string], Group>(groups('scope = ? AND threadId = ?')),
    line: database.prepare<[number], Line>(
      'SELECT line, scope, threadId, owner, agentId, name, archived, createdAt, lastUsedAt, deletedAt FROM lines WHERE id = ?',
    ),
    rivals: database.prepare<[string, string], Rival>(
      'SELECT line, scope, threadId, owner FROM lines WHERE scope = ? AND threadId = ? ORDER BY id',
    ),
  })
  const ready = (): NonNullable<typeof sealed> => {
    if (sealed === undefined) throw new Error('the staging table is read before it is sealed')
    return sealed
  }
  const rowAt = (id: number): Row => {
    const line = ready().line.get(id)
    if (line === undefined) throw new Error('a line of the staging table is missing')
    const { line: number, scope, threadId, owner, archived, ...facts } = line
    return { kind: 'row', line: number, scope, threadId, owner, facts: { ...facts, archived: archived === 1 } }
  }

  return {
    add(entry) {
      const { line, scope, threadId, owner } = entry
      // A line without a thread or an owner disputes nothing.
      if (threadId === null || owner === null) return
      guard(() => insert.run({ line, scope, threadId, owner, ...valuesOf(entry) }))
    },
    seal: () =>
      guard(() => {
        database.exec('CREATE INDEX lines_by_thread ON lines (scope, threadId, owner, takeable); COMMIT')
        sealed = statements()
        const { threads } = database
          .prepare<[], { threads: number }>('SELECT COUNT(*) AS threads FROM (SELECT DISTINCT scope, threadId FROM lines)')
          .get() ?? { threads: 0 }
        return threads
      }),
    page: (after, limit) =>
      guard(() => {
        const found = after === null ? ready().first.all(limit) : ready().page.all(after.scope, after.threadId, limit)
        const last = found.at(-1)
        const takeable = found.filter((group) => group.agreed === 1 && group.first !== null)
        return {
          rows: takeable.map((group) => rowAt(group.first as number)),
          disputed: found.filter(isDisputed).map(keyOf),
          repeated: takeable.reduce((sum, group) => sum + group.takeable - 1, 0),
          next: last === undefined || found.length < limit ? null : keyOf(last),
        }
      }),
    ownerOf: ({ scope, threadId }) =>
      guard(() => {
        const group = ready().one.get(scope, threadId)
        if (group === undefined || group.first === null) return null
        return isDisputed(group) ? 'disputed' : rowAt(group.first)
      }),
    rivals: ({ scope, threadId }) => ready().rivals.iterate(scope, threadId),
    close: () => void database.close(),
  }
}

function keyOf({ scope, threadId }: ThreadKey): ThreadKey {
  return { scope, threadId }
}

/** If no line of a group is valid, each line was already reported on its own. */
function isDisputed(group: Group): boolean {
  return group.agreed === 0 && group.first !== null
}

function valuesOf(entry: Entry): object {
  if (entry.kind === 'row') return { ...entry.facts, takeable: 1, archived: Number(entry.facts.archived) }
  return { takeable: 0, agentId: null, name: null, archived: null, createdAt: null, lastUsedAt: null, deletedAt: null }
}
