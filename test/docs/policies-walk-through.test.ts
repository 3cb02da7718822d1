/**
 * The walk-through of docs/reference/policy.md, followed to the letter in a folder of its own, while a gateway runs there: every
 * command as it is written, every edit as it is told, and the output that the page shows.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { test, type Test } from 'tap'
import { parse, stringify } from 'yaml'
import { serving, type Serving } from '../../testing/support/program.ts'
import { call, codeOf, runInput } from '../../testing/support/client.ts'
import { makeFolder } from '../../testing/support/gateway.ts'
import { makeSigner } from '../../testing/support/tokens.ts'
import { until } from '../../testing/support/until.ts'
import { events, INFO, json, startUpstream, type Upstream } from '../../testing/support/upstream.ts'
import { page, ROOT, section } from './markdown.ts'

const HEADING = 'Walk-through: open one agent to one role'
const WALK = section(page('docs/reference/policy.md'), HEADING)

/** What a reader does at each fence of the page, in its order. */
const STEPS = Array.from(WALK.matchAll(/^```([\w ]+)\n([^]*?)^```$/gm), ([, kind = '', code = '']) => ({ kind, code }))

/** The step that puts the draft in force. */
const IN_FORCE = STEPS.findIndex(({ code }) => code.includes('kill -HUP'))

/** Exit codes of the commands, in the order of the page: `diff` finds differences, the clerk is refused. */
const CODES = [0, 0, 0, 1, 0, 3, 0, 0, 0]

/** The folder as a reader has it: a configuration without a policy, the shipped policies, the program. */
function readersFolder(t: Test, upstream: Upstream, authentication: object): string {
  const { folder, remove } = makeFolder()
  t.teardown(remove)
  const configuration = {
    version: 1,
    listen: { host: '127.0.0.1', port: 0 },
    health: { host: '127.0.0.1', port: 0 },
    upstream: { url: upstream.url, basePath: '/api/copilotkit' },
    authentication,
    ownership: { unknownThread: 'claim' },
  }
  writeFileSync(join(folder, 'threadwarden.yaml'), stringify(configuration))
  cpSync(join(ROOT, 'policies'), join(folder, 'policies'), { recursive: true })
  mkdirSync(join(folder, 'dist'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(folder, 'dist/cli.js'), `await import(${JSON.stringify(pathToFileURL(join(ROOT, 'src/cli.ts')).href)})\n`)
  return folder
}

/** Types a command into a shell. */
async function typed(command: string, folder: string, pid: number): Promise<{ readonly code: number; readonly output: string }> {
  const path = [dirname(process.execPath), process.env['PATH'] ?? ''].join(delimiter)
  const shell = spawn('sh', ['-e', '-c', command], { cwd: folder, env: { PATH: path, GATEWAY_PID: String(pid) } })
  const closed = once(shell, 'close') as Promise<[number]>
  const [stdout, stderr, [code]] = await Promise.all([text(shell.stdout), text(shell.stderr), closed])
  return { code, output: `${stdout}${stderr}` }
}

/** Edits as the page says: a line at the end of the configuration, or the first item under `rules:` of the draft. */
function edit(code: string, folder: string): void {
  const rule = Array.isArray(parse(code))
  const file = join(folder, rule ? 'draft.yaml' : 'threadwarden.yaml')
  const before = readFileSync(file, 'utf8')
  const after = rule ? before.replace(/^rules:\n/m, (line) => `${line}${code}`) : `${before}${code}`
  writeFileSync(file, after)
}

/** How often the gateway has put a configuration in force since it started. */
function changes({ lines }: Serving): number {
  return lines.filter(({ msg }) => msg === 'the configuration was changed').length
}

void test('whoever follows the page opens one agent to one role', async (t) => {
  const signer = makeSigner()
  t.teardown(() => signer.remove())
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const agents = { default: { name: 'default' }, finance: { name: 'finance' } }
  upstream.answer((request, response) =>
    (request.target.endsWith('/info') ? json({ ...INFO, agents }) : events({ type: 'RUN_FINISHED' }))(request, response),
  )
  const folder = readersFolder(t, upstream, signer.authentication)
  const gateway = await serving(t, join(folder, 'threadwarden.yaml'))
  const base = `${String(gateway.listening['url'])}/api/copilotkit`
  await until(async () => (await fetch(`${String(gateway.listening['health'])}/readyz`)).ok)
  const clerk = signer.sign('carla', { role: 'clerk' })
  const accountant = signer.sign('anna', { role: 'accounting' })
  const runs = (token: string, agent: string) =>
    call(`${base}/agent/${agent}/run`, { token, body: runInput(crypto.randomUUID()) })
  const listed = async (token: string) => {
    const told = (await call(`${base}/info`, { token })).json as { readonly agents: object }
    return Object.keys(told.agents)
  }

  t.equal((await runs(clerk, 'finance')).status, 200, 'before, everybody runs the agent')
  const codes: number[] = []
  let output = ''
  for (const [at, { kind, code }] of STEPS.entries()) {
    if (kind === 'sh') {
      const done = await typed(code, folder, gateway.pid)
      output = done.output
      codes.push(done.code)
    } else if (kind === 'yaml tests') {
      writeFileSync(join(folder, 'finance.test.yaml'), code)
    } else if (kind === 'yaml') {
      edit(code, folder)
      if (code.startsWith('policy:')) await until(() => changes(gateway) === 1)
    } else {
      for (const line of code.trimEnd().split('\n')) t.ok(output.split('\n').includes(line), `the output has: ${line}`)
    }
    if (at === IN_FORCE) await until(() => changes(gateway) === 2)
    if (at < IN_FORCE) t.equal((await runs(clerk, 'finance')).status, 200, 'a draft is not in force')
  }
  t.same(codes, CODES, output)

  const refused = await runs(clerk, 'finance')
  t.same([refused.status, codeOf(refused)], [403, 'not-allowed'])
  t.equal((await runs(accountant, 'finance')).status, 200)
  t.equal((await runs(clerk, 'default')).status, 200, 'other agents are as they were')
  t.same(await listed(clerk), ['default'])
  t.same(await listed(accountant), ['default', 'finance'])
  t.equal((await gateway.end('SIGTERM')).code, 0)
})

void test('the page has a command for each thing that it promises', (t) => {
  t.same(STEPS.map(({ kind }) => kind).filter((kind) => kind === 'sh').length, CODES.length)
  for (const word of ['validate', 'diff', 'explain', 'kill -HUP', 'test'])
    t.ok(
      STEPS.some(({ code }) => code.includes(word)),
      word,
    )
  t.end()
})
