/** `threadwarden top`: refusals and open streams of a running gateway, in a terminal, again and again. */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { originOf } from '../config/health-listener.ts'
import { duration } from '../document/quantities.ts'
import type { Decision, MinuteOfDecisions, Status, Stream } from '../http/admin/schemas.ts'
import { askListener, givenOrigin } from './ask-listener.ts'
import { CommandFailed, CONFIG, defineCommand, EXIT, flag, jsonFlag, UsageError, value, type Values } from './command.ts'
import { loadConfig, readInput } from './input-files.ts'
import { columns, harmless, paintFor, printData, write, type Paint, type Terminal } from './terminal.ts'

const OPTIONS = {
  config: CONFIG,
  url: value('URL', 'the admin listener, instead of that of the configuration, for example http://127.0.0.1:9090'),
  'credential-file': value('F', 'a file with the admin credential, instead of that of the configuration'),
  interval: { ...value('TIME', 'the time between two looks'), default: '2s' },
  once: flag('looks once, and ends'),
  json: jsonFlag('{"status", "minutes", "refusals", "streams"} for each look, one on a line,'),
} as const

const MOST_BYTES = 16 * 1024 * 1024
const MOST_CREDENTIALS = 4096
const ANSWER_MS = 5000
/** Rows of a terminal that does not tell its size. */
const ROWS = 40
/** Moves to the first cell and clears the screen (ECMA-48, CUP and ED). */
const CLEAR = '\u001b[H\u001b[J'

export const command = defineCommand({
  about: `Shows refusals by reason, the latest refusals with their rules, and the open streams of a running gateway. It asks the admin
listener (admin of the configuration) every two seconds, until you press Ctrl-C. It changes nothing.`,
  options: OPTIONS,
  exitCodes: { 0: 'ended by Ctrl-C, or looked once', 1: 'no answer, or a wrong credential' },
  examples: [
    'threadwarden top',
    'threadwarden top --once --json',
    'threadwarden top --url http://127.0.0.1:9090 --credential-file admin.txt',
  ],

  async run(values, terminal) {
    const pause = duration.safeParse(values.interval)
    if (!pause.success || pause.data < 100)
      throw new UsageError(`--interval ${values.interval} is not a duration from 100ms on: write 2s or 500ms`)
    const target = targetOf(values, terminal)
    const ended = new AbortController()
    const interrupted = once(process, 'SIGINT', { signal: ended.signal }).then(
      () => ended.abort(),
      () => {},
    )
    const { stdout, env } = terminal
    const paint = paintFor(stdout, env)
    while (!ended.signal.aborted) {
      const look = await lookAt(target)
      if (values.json) printData(terminal, look, 0)
      else write(terminal, `${stdout.isTTY === true && !values.once ? CLEAR : ''}${frame(look, paint, sizeOf(terminal))}\n`)
      if (values.once) break
      await sleep(pause.data, undefined, { signal: ended.signal }).catch(() => {})
    }
    ended.abort()
    await interrupted
    return EXIT.fine
  },
})

interface Target {
  readonly origin: string
  readonly credential: string
}

/** @throws UsageError without an address and a credential */
function targetOf({ url, 'credential-file': file, config }: Values<typeof OPTIONS>, terminal: Terminal): Target {
  const given = file === undefined ? null : credentialIn('--credential-file', file)
  if (url !== undefined && given !== null) return { origin: givenOrigin(url, 'admin', 9090), credential: given }
  const { admin } = loadConfig(terminal, { config }).config
  if (admin === undefined) {
    throw new UsageError('the configuration has no admin listener: add admin, or pass --url and --credential-file')
  }
  const origin = url === undefined ? originOf(admin) : givenOrigin(url, 'admin', 9090)
  if (origin === null) throw new UsageError('admin.port is 0: pass the address with --url')
  return { origin, credential: given ?? admin.credential ?? credentialIn('admin.credentialFile', admin.credentialFile ?? '') }
}

/** The first line: a file may have the old credential beside the new one. */
function credentialIn(option: string, file: string): string {
  const lines = readInput(option, file, MOST_CREDENTIALS).toString('utf8').split('\n')
  const credential = lines.map((line) => line.trim()).find((line) => line !== '')
  if (credential === undefined || !/^[\x21-\x7e]+$/.test(credential))
    throw new UsageError(`${option} ${file} contains no credential`)
  return credential
}

interface Look {
  readonly status: Status
  readonly minutes: readonly MinuteOfDecisions[]
  readonly refusals: readonly Decision[]
  readonly streams: readonly Stream[]
}

/** @throws CommandFailed without an answer */
async function lookAt(target: Target): Promise<Look> {
  const [status, { minutes }, { decisions: refusals }, { streams }] = await Promise.all([
    ask<Status>(target, '/status'),
    ask<{ readonly minutes: Look['minutes'] }>(target, '/decisions/minutes'),
    ask<{ readonly decisions: Look['refusals'] }>(target, '/decisions?reason=refused&limit=100'),
    ask<{ readonly streams: Look['streams'] }>(target, '/streams'),
  ])
  return { status, minutes, refusals, streams }
}

/** @throws CommandFailed without an answer */
async function ask<Answer>({ origin, credential }: Target, path: string): Promise<Answer> {
  const failed = (why: string): CommandFailed => new CommandFailed(`error: ${origin}${path}: ${why}`)
  const headers = { authorization: `Bearer ${credential}` }
  const { status, text } = await askListener(`${origin}${path}`, { timeoutMs: ANSWER_MS, mostBytes: MOST_BYTES, headers }).catch(
    (error: unknown) => {
      throw failed(error instanceof Error ? error.message : String(error))
    },
  )
  if (status === 401) throw failed('the credential is wrong (401)')
  if (status !== 200) throw failed(`the answer was ${status}: is this the admin listener?`)
  try {
    return JSON.parse(text) as Answer
  } catch {
    throw failed('the answer is no JSON: is this the admin listener?')
  }
}

interface Size {
  readonly rows: number
  readonly width: number
}

function sizeOf({ stdout }: Terminal): Size {
  const { rows = ROWS, columns: width = Infinity } = stdout as { readonly rows?: number; readonly columns?: number }
  return { rows, width }
}

const MINUTE_MS = 60_000
const SPANS = [
  ['1m', 1],
  ['5m', 5],
  ['60m', 60],
] as const

/** Rows of the frame besides those of its lists. */
const FIXED_ROWS = 10

function frame({ status, minutes, refusals, streams }: Look, paint: Paint, { rows, width }: Size): string {
  const { configuration, pending, notes } = status
  const reasons = [...new Set(minutes.flatMap(({ refused }) => Object.keys(refused)))]
  const counts = reasons
    .map((reason) => ({
      reason,
      of: SPANS.map(([, span]) => sum(within(minutes, span).map(({ refused }) => refused[reason] ?? 0))),
    }))
    .toSorted((one, other) => (other.of[0] ?? 0) - (one.of[0] ?? 0) || (other.of[2] ?? 0) - (one.of[2] ?? 0))
  const permitted = SPANS.map(([, span]) => sum(within(minutes, span).map((one) => one.permitted)))
  const room = Math.max(3, Math.floor((rows - FIXED_ROWS - Object.keys({ ...pending, ...notes }).length) / 3))
  const cut = (text: string): string => (text.length > width ? `${text.slice(0, Math.max(0, width - 1))}…` : text)
  const table = (head: readonly string[], body: readonly (readonly string[])[]): readonly string[] =>
    columns([head, ...body])
      .split('\n')
      .map((line, at) => (at === 0 ? paint('bold', cut(line)) : cut(line)))
  return [
    `threadwarden ${status.version}  ${status.ready ? paint('green', 'ready') : paint('red', 'not ready')}  generation ${configuration.generation}  policy ${configuration.policy.hash.slice(0, 12)}  ${streams.length} streams`,
    ...Object.entries(pending).map(([name, text]) => paint('red', cut(harmless(`${name}: ${text}`)))),
    ...Object.entries(notes).map(([name, text]) => paint('yellow', cut(harmless(`${name}: ${text}`)))),
    '',
    ...table(
      ['DECISIONS', ...SPANS.map(([name]) => name)],
      [['permitted', ...permitted.map(String)], ...counts.slice(0, room).map(({ reason, of }) => [reason, ...of.map(String)])],
    ),
    '',
    ...table(
      ['REFUSED', 'USER', 'ROUTE', 'THREAD', 'REASON', 'RULE'],
      refusals
        .slice(0, room)
        .map(({ time, principal, route, thread, reason, rule }) => [
          clockText(time),
          principal?.id ?? '-',
          route,
          thread ?? '-',
          reason,
          rule === null ? '-' : `${rule.name}${rule.line === null ? '' : ` (line ${rule.line})`}`,
        ]),
    ),
    '',
    ...table(
      ['STREAM SINCE', 'USER', 'ROUTE', 'AGENT', 'THREAD'],
      streams
        .slice(0, room)
        .map(({ openedAt, user, route, agent, thread }) => [clockText(openedAt), user, route, agent ?? '-', thread ?? '-']),
    ),
    ...(streams.length > room ? [`… and ${streams.length - room} more`] : []),
  ].join('\n')
}

function within(minutes: readonly MinuteOfDecisions[], span: number): readonly MinuteOfDecisions[] {
  const after = Date.now() - span * MINUTE_MS
  return minutes.filter(({ minute }) => Date.parse(minute) > after)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0)
}

/** The time of day in UTC, as in the log. */
function clockText(time: string): string {
  return time.slice(11, 19)
}
