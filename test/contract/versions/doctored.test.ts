/** `npm run contract` notices what a runtime takes and gives besides: copies of the real one, each with one thing more or less. */
import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test, type Test } from 'tap'
import { NEWEST_TESTED } from '../../../src/core/route/runtime-version.ts'
import { listen, stop } from '../../../examples/http.ts'
import { folderOf } from '../../../testing/contract/installed.ts'
import { makeFolder } from '../../../testing/support/gateway.ts'
import { ROOT } from '../../suites/suites.ts'

interface Change {
  /** Below `dist/v2/runtime`. */
  readonly file: string
  readonly from: string
  readonly to: string
}

/** A copy of the newest runtime whose packages are those of the original. */
function copyWith(t: Test, changes: readonly Change[]): string {
  const original = folderOf(NEWEST_TESTED)
  if (original === null) throw new Error(`runtime ${NEWEST_TESTED} is not installed`)
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  mkdirSync(join(folder, 'runtime'))
  for (const name of ['dist', 'package.json']) cpSync(join(original, name), join(folder, 'runtime', name), { recursive: true })
  symlinkSync(join(ROOT, 'examples/node_modules'), join(folder, 'runtime/node_modules'))
  for (const { file, from, to } of changes) {
    const path = join(folder, 'runtime/dist/v2/runtime', file)
    const source = readFileSync(path, 'utf8')
    if (!source.includes(from)) throw new Error(`${file} has no ${from}`)
    writeFileSync(path, source.replace(from, to))
  }
  return join(folder, 'runtime')
}

interface Ended {
  readonly code: number | null
  readonly output: string
  readonly faults: string
}

async function run(...words: readonly string[]): Promise<Ended> {
  return runWith({}, ...words)
}

async function runWith(env: Readonly<Record<string, string>>, ...words: readonly string[]): Promise<Ended> {
  const command = spawn(process.execPath, ['scripts/contract.ts', ...words], {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [output, faults] = await Promise.all([text(command.stdout), text(command.stderr), once(command, 'close')])
  return { code: command.exitCode, output, faults }
}

const compared = (folder: string): Promise<Ended> => run('--folder', folder)

const ROUTER = 'core/fetch-router.mjs'
const HANDLER = 'core/fetch-handler.mjs'
const LAST_ROUTE = 'if (len >= 1 && segments[len - 1] === "annotate")'

interface Addition {
  readonly what: string
  readonly found: string
  readonly changes: readonly Change[]
}

const ADDED: readonly Addition[] = [
  {
    what: 'a route with an id',
    found: 'the route POST threads/:threadId/fork',
    changes: [
      {
        file: ROUTER,
        from: LAST_ROUTE,
        to: `if (len >= 3 && segments[len - 3] === "threads" && segments[len - 1] === "fork") return { method: "threads/fork", threadId: segments[len - 2] };\n${LAST_ROUTE}`,
      },
    ],
  },
  {
    what: 'a route of one word, with a method that no other route has',
    found: 'the route PUT exports',
    changes: [
      { file: ROUTER, from: LAST_ROUTE, to: `if (segments[len - 1] === "exports") return { method: "exports" };\n${LAST_ROUTE}` },
      {
        file: HANDLER,
        from: 'case "threads/update":\n\t\t\tif (method',
        to: 'case "exports":\n\t\t\tif (method === "PUT") return null;\n\t\t\treturn jsonResponse({}, 405, { Allow: "PUT" });\n\t\tcase "threads/update":\n\t\t\tif (method',
      },
    ],
  },
  {
    what: 'a method of a known path',
    found: 'the route PUT memories/:memoryId',
    changes: [
      {
        file: HANDLER,
        from: 'if (method === "PATCH" || method === "DELETE") return null;',
        to: 'if (method === "PATCH" || method === "DELETE" || method === "PUT") return null;',
      },
    ],
  },
  {
    what: 'a route that only a handler names',
    found: 'the name of a route threads/deep, which no path and no envelope reached',
    changes: [
      {
        file: HANDLER,
        from: 'case "threads/clear": return Promise',
        to: 'case "threads/deep": return handleListThreads({ runtime, request });\n\t\tcase "threads/clear": return Promise',
      },
    ],
  },
  {
    what: 'a method of an envelope',
    found: 'the envelope method agent/fork',
    changes: [{ file: 'endpoints/single-route-helpers.mjs', from: '"agent/run",', to: '"agent/run",\n\t"agent/fork",' }],
  },
  {
    what: 'a key of an envelope',
    found: 'the key tenant of an envelope',
    changes: [
      {
        file: 'endpoints/single-route-helpers.mjs',
        from: 'params: jsonEnvelope.params,',
        to: 'params: jsonEnvelope.tenant ?? jsonEnvelope.params,',
      },
    ],
  },
  {
    what: 'an agent route in the tunnel',
    found: 'POST transcribe in an envelope resource/request',
    changes: [
      { file: HANDLER, from: 'case "annotate": return true;', to: 'case "annotate":\n\t\tcase "transcribe": return true;' },
    ],
  },
  {
    what: 'a body key of a run',
    found: 'the body key tenantId of POST agent/:agentId/run',
    changes: [
      {
        file: 'handlers/shared/agent-utils.mjs',
        from: 'return RunAgentInputSchema.parse(requestBody);',
        to: 'const parsed = RunAgentInputSchema.parse(requestBody);\n\t\treturn requestBody.tenantId === void 0 ? parsed : { ...parsed, threadId: requestBody.tenantId };',
      },
    ],
  },
  {
    what: 'a body key where the managed platform is needed',
    found: 'the body key owner of PATCH threads/:threadId',
    changes: [{ file: 'handlers/intelligence/threads.mjs', from: '["name", "archived"]', to: '["name", "archived", "owner"]' }],
  },
  {
    what: 'a handler that takes all keys',
    found: 'the body key of any name of POST annotate',
    changes: [{ file: 'handlers/intelligence/annotate.mjs', from: 'type: body.type,\n', to: '...body,\n\t\ttype: body.type,\n' }],
  },
  {
    what: 'a field of /info',
    found: 'the field tenants of /info',
    changes: [
      { file: 'handlers/get-runtime-info.mjs', from: 'mode: runtime.mode,', to: 'mode: runtime.mode,\n\t\t\ttenants: [],' },
    ],
  },
  {
    what: 'a header that reaches agents',
    found: 'the header cookie, which reaches agents',
    changes: [
      {
        file: 'handlers/header-utils.mjs',
        from: '(lower === "authorization" ||',
        to: '(lower === "authorization" || lower === "cookie" ||',
      },
    ],
  },
]

void test('a copy without a change is known', async (t) => {
  const { code, output } = await compared(copyWith(t, []))
  t.same([code, output.split('\n').at(-2)], [0, 'the gateway knows all of it'])
})

void test('what is added is named, one line each', async (t) => {
  const { code, output, faults } = await compared(
    copyWith(
      t,
      ADDED.flatMap(({ changes }) => changes),
    ),
  )
  t.equal(code, 1, faults)
  const lines = output.split('\n').filter((line) => line.startsWith('unknown: '))
  for (const { what, found } of ADDED) t.ok(lines.includes(`unknown: ${found}`), `${what}: ${found}`)
  const others = lines.filter((line) => !ADDED.some(({ found }) => line === `unknown: ${found}`))
  t.same(others, ['unknown: the body key tenantId of POST agent/:agentId/suggest'], 'which reads its body as a run does')
})

void test('another precedence of headers than that of its version is named', async (t) => {
  const { code, output } = await compared(
    copyWith(t, [
      {
        file: 'handlers/shared/agent-utils.mjs',
        from: 'agent.headers = mergeForwardableHeaders(',
        to: 'agent.headers = ((own, { headers }) => ({ ...own, ...Object.fromEntries([...headers].filter(([name]) => name === "authorization" || name.startsWith("x-"))) }))(',
      },
    ]),
  )
  t.equal(code, 1)
  t.match(output, /^unknown: the headers of the caller win at an agent/m)
})

void test('a runtime whose routes are not found is not taken for a known one', async (t) => {
  const { code, output, faults } = await compared(
    copyWith(t, [{ file: ROUTER, from: 'segments[len - 1] === "run"', to: 'segments[len - 1] === ["ru", "ns"].join("")' }]),
  )
  t.equal(code, 1)
  t.match(faults, /could not be asked[^]*the agent was not asked/)
  t.equal(output, '')
})

void test('a folder that is no runtime, and a package that does not load, are errors', async (t) => {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  t.match(await compared(folder), { code: 1, output: '', faults: /could not be asked/ })
})

void test('the command line', async (t) => {
  t.match(await run('--help'), { code: 0, output: /--runtime VERSION/ })
  for (const words of [
    [],
    ['--runtime', '../../x'],
    ['--runtime', '1.75'],
    ['--runtime', '1.75.0', '--newest'],
    ['--nonsense'],
    ['word'],
  ]) {
    t.match(await run(...words), { code: 2, output: '' }, words.join(' '))
  }
  const json = await run('--runtime', NEWEST_TESTED, '--json')
  t.match(JSON.parse(json.output), { version: NEWEST_TESTED, missing: [], unknown: [] })
})

void test('without a registry, the error says what to check, and no half of an install is left', async (t) => {
  const closed = createServer()
  const { origin } = await listen(closed, 0, '127.0.0.1')
  await stop(closed)
  const env = { npm_config_registry: origin, npm_config_fetch_retries: '0', npm_config_cache: join(makeCache(t), 'npm') }
  const missing = await runWith(env, '--runtime', '1.54.0')
  t.match(missing, { code: 1, output: '', faults: /could not be installed: is the npm registry reachable/ })
  t.equal(folderOf('1.54.0'), null)
  t.notOk(readdirSync(join(ROOT, 'node_modules/.cache/runtimes')).some((name) => name.startsWith('1.54.0')))
  const silence = /the npm registry does not answer, so that no runtime newer than 1\.75\.0 was compared/
  t.match(await runWith(env, '--newest'), { code: 1, output: '', faults: silence })
  t.match(await runWith(env, '--newest', '--or-skip'), { code: 0, output: '', faults: silence })
})

function makeCache(t: Test): string {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  return folder
}
