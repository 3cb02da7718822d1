/** The admin API on a real socket, over a real store. */
import { writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import { makeAdminCredentials } from '../../src/http/admin/credentials.ts'
import { Sources } from '../../src/document/sources.ts'
import { makeAdminApp, type ReloadResult } from '../../src/http/admin/admin.ts'
import type { Inspection } from '../../src/http/admin/inspection.ts'
import { makeLog } from '../../src/observe/log.ts'
import type { RevocationList } from '../../src/store/port/revocations.ts'
import type { Store } from '../../src/store/port/store.ts'
import { makeRevocationList } from '../../src/store/revocations.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { call, type Call, type Reply } from './client.ts'
import { makeFolder } from './gateway.ts'
import { requireDocumented } from './admin-document.ts'

/** What the API's clock says. */
export const NOW = Date.parse('2026-01-31T12:00:00.000Z')
export const OPERATOR = 'the-credential-of-the-operators-0123456789'

/** The API under test. */
export interface Admin {
  readonly url: string
  readonly store: Store
  /** What the process goes by. */
  readonly list: RevocationList
  /** Where the credential is. */
  readonly credentialFile: string
  /** Every log line, parsed. */
  readonly lines: readonly Record<string, unknown>[]
  /** The audit lines, without their time, level, id and address. */
  readonly audit: () => readonly Record<string, unknown>[]
  /** A request with the credential, unless it brings another. Throws if the answer is not as the OpenAPI document says. */
  readonly ask: (path: string, options?: Call) => Promise<Reply>
  /** Makes the store fail from now on. */
  readonly breakStore: () => Promise<void>
  /** Methods and paths that the API has, as `GET /threads/:id`. */
  readonly routes: readonly string[]
}

/** What a reload comes to where a test does not say. */
const UNCHANGED: ReloadResult = { outcome: 'unchanged', generation: 1, faults: [] }

const none = (): never => {
  throw new Error('there is no gateway: test/http/inspection.test.ts has one')
}
const NO_GATEWAY: Inspection = {
  status: none,
  decisions: none,
  minutes: none,
  streams: none,
  endStream: none,
  policy: none,
  configuration: none,
  explain: none,
  budgets: none,
}

/**
 * Starts it; it knows the issuers `corp` and `partner`.
 * @param reload what comes of a reload
 */
export async function startAdmin(t: Test, reload: () => ReloadResult = () => UNCHANGED): Promise<Admin> {
  const { folder, remove } = makeFolder()
  const credentialFile = join(folder, 'admin')
  writeFileSync(credentialFile, `${OPERATOR}\n`)
  const store = await openSqliteStore(join(folder, 'ownership.db'))
  // It looks at nothing by itself: what is in force after an answer is in force because of it.
  const list = await makeRevocationList(store, { interval: 1e8 })
  const lines: Record<string, unknown>[] = []
  const log = makeLog('debug', { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) })
  let requests = 0
  const app = makeAdminApp({
    store,
    revocations: list,
    credentials: makeAdminCredentials({ credentialFile }, new Sources(), (message) =>
      log.error({ detail: message }, 'credentials'),
    ),
    console: null,
    issuers: () => ['corp', 'partner'],
    reload: () => Promise.resolve(reload()),
    inspection: NO_GATEWAY,
    log,
    clock: () => NOW,
    requestId: () => `r-${(requests += 1)}`,
  })
  t.teardown(async () => {
    list.stop()
    await app.close()
    await store.close()
    remove()
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`
  return {
    url,
    store,
    list,
    credentialFile,
    lines,
    audit: () =>
      lines
        .filter(({ msg }) => msg === 'admin')
        .map((line) => Object.fromEntries(['action', 'target', 'outcome'].map((key) => [key, line[key]]))),
    async ask(path, options = {}) {
      const reply = await call(`${url}${path}`, { token: OPERATOR, ...options })
      requireDocumented(options.method ?? (options.body === undefined ? 'GET' : 'POST'), path, reply)
      return reply
    },
    breakStore: () => store.close(),
    routes: routesIn(app.printRoutes({ commonPrefix: false })),
  }
}

/** Reads the tree of routes as Fastify prints it: four columns a level, and the methods in brackets. */
function routesIn(tree: string): readonly string[] {
  const above: string[] = []
  return tree.split('\n').flatMap((line) => {
    const [, indent = '', part = '', methods = ''] = /^((?:[│ ] {3})*)[├└]── (\S*)(?: \(([A-Z, ]+)\))?$/.exec(line) ?? []
    const depth = indent.length / 4
    above.splice(depth, Infinity, part)
    return methods === '' ? [] : methods.split(', ').map((method) => `${method} ${above.join('')}`)
  })
}
