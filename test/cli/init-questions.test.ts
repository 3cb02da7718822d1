/** `threadwarden init` on a terminal: the questions that it asks, and what it makes of the answers. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { test, type Test } from 'tap'
import { run as runProgram } from '../../src/cli/run.ts'
import { freePort } from '../../testing/support/free-port.ts'
import { json, startUpstream } from '../../testing/support/upstream.ts'
import { until } from '../../testing/support/until.ts'
import { initScene, plainIssuer, type InitScene } from './init-scene.ts'

const PROGRAM = fileURLToPath(new URL('../../src/cli.ts', import.meta.url))

interface Conversation {
  /** Waits for a question, and types what follows it. */
  readonly reply: (question: string, answer: string) => Promise<void>
  readonly ended: Promise<{ readonly code: number | null; readonly screen: string }>
}

/** The program on a pseudo-terminal, which `script` of util-linux makes. */
function converse(t: Test, { folder }: InitScene, ...args: readonly string[]): Conversation {
  const command = [process.execPath, PROGRAM, 'init', ...args].map((word) => `'${word}'`).join(' ')
  const child = spawn('script', ['--quiet', '--return', '--flush', '--command', command, '/dev/null'], {
    cwd: folder,
    env: { PATH: process.env['PATH'], SHELL: '/bin/sh', TERM: 'xterm', NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] },
  })
  const closed = once(child, 'close') as Promise<[number | null]>
  t.teardown(async () => {
    child.kill('SIGKILL')
    await closed
  })
  child.stdin.on('error', () => {})
  let screen = ''
  child.stdout.setEncoding('utf8').on('data', (piece: string) => void (screen += piece))
  let from = 0
  return {
    reply: async (question, answer) => {
      await until(() => screen.indexOf(question, from) !== -1)
      from = screen.indexOf(question, from) + question.length
      child.stdin.write(answer)
    },
    ended: closed.then(([code]) => ({ code, screen: stripVTControlCharacters(screen).replaceAll('\r', '') })),
  }
}

void test('a conversation, with answers that cannot be used', async (t) => {
  const [issuer, upstream] = [await plainIssuer(t), await startUpstream()]
  t.teardown(() => upstream.close())
  const scene = initScene(t)
  const { reply, ended } = converse(t, scene)
  const first = 'URL of the runtime or agent, with its path [http://127.0.0.1:4000/api/copilotkit]: '
  await reply(first, 'nonsense\n')
  await reply('must be a URL', '')
  await reply(first, `http://127.0.0.1:${await freePort()}\n`)
  await reply('nothing listens on', '')
  await reply(first, `${upstream.url}/api\n`)
  await reply('Issuer of the tokens: ', `${issuer.url}/other\n`)
  await reply('answered 404', '')
  await reply('Issuer of the tokens: ', `${issuer.url}/\n`)
  await reply('Your id for it, part of every user id [corp]: ', 'My Company\n')
  await reply('must consist of', '')
  await reply('[corp]: ', 'company\n')
  await reply('aud of its access tokens [agent-chat]: ', '\n')
  await reply('(empty: the same origin): ', 'https://app.example.com\n')
  const { code, screen } = await ended
  t.equal(code, 0)
  t.match(screen, 'threadwarden.yaml is written, and valid\n')
  t.notMatch(screen, 'tokens have agent-chat in aud', 'what was confirmed is not assumed')
  t.match(scene.written(), {
    upstream: { url: upstream.url, basePath: '/api' },
    authentication: { issuers: { company: { issuer: issuer.url, audiences: ['agent-chat'] } } },
    cors: { origins: ['https://app.example.com'] },
  })
})

void test('Ctrl-C ends it, with nothing written', async (t) => {
  const scene = initScene(t)
  const { reply, ended } = converse(t, scene)
  await reply(']: ', 'half of an answer')
  await reply('half of an answer', '\u0003')
  t.match(await ended, { code: 1, screen: /\nnothing was written\n$/ })
  t.notOk(scene.isWritten())
})

/** A terminal in this process. Each answer follows its question; then the input ends. */
async function typed(t: Test, args: readonly string[], answers: readonly (readonly [question: string, answer: string])[]) {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()]
  const terminal = {
    stdin: Object.assign(stdin, { isTTY: true }),
    stdout,
    stderr: Object.assign(stderr, { isTTY: true }),
    env: {},
  }
  let shown = ''
  stderr.setEncoding('utf8').on('data', (piece: string) => void (shown += piece))
  const out = text(stdout)
  const code = runProgram(['init', ...args], terminal)
  for (const [question, answer] of answers) {
    await until(() => shown.includes(question))
    stdin.write(`${answer}\n`)
  }
  stdin.end()
  const ended = await code
  stdout.end()
  t.comment(shown)
  return { code: ended, stdout: await out, stderr: stripVTControlCharacters(shown) }
}

void test('the end of the input ends it', async (t) => {
  const scene = initScene(t)
  t.match(await typed(t, ['--out', scene.file], []), { code: 1, stdout: '', stderr: /nothing was written\n$/ })
  t.notOk(scene.isWritten())
})

void test('a server that is no runtime may be an agent; what the options say is not asked', async (t) => {
  const [issuer, upstream] = [await plainIssuer(t), await startUpstream()]
  t.teardown(() => upstream.close())
  upstream.answerQuestions(json({}, 404))
  const scene = initScene(t)
  const options = ['--issuer', issuer.url, '--issuer-id', 'demo', '--audience', 'chat', '--origin', 'https://app.example.com']
  const { code, stderr } = await typed(
    t,
    ['--out', scene.file, ...options],
    [
      ['[http://127.0.0.1:4000/api/copilotkit]: ', `${upstream.url}/`],
      ['If it is an AG-UI agent, its id (empty: another URL): ', 'research'],
    ],
  )
  t.equal(code, 0)
  t.notMatch(stderr, /Issuer of|Your id|aud of|Origin of/)
  t.match(scene.written(), { agents: { research: { url: upstream.url, path: '/' } }, authentication: { issuers: { demo: {} } } })
})

void test('without a terminal for the questions there are none', async (t) => {
  const terminal = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough(), env: {} }
  for (const [stdin, stderr] of [
    [true, false],
    [false, true],
  ] as const) {
    Object.assign(terminal.stdin, { isTTY: stdin })
    Object.assign(terminal.stderr, { isTTY: stderr })
    t.equal(await runProgram(['init'], terminal), 2)
  }
})
