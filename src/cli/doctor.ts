/** `threadwarden doctor`: checks everything around a gateway as a client would, and reports problems. */
import { duration } from '../document/quantities.ts'
import { examine } from '../tools/doctor/examine.ts'
import {
  isFault,
  notChecked,
  ok,
  problem,
  seconds,
  warning,
  type Finding,
  type Result,
  asData,
  report,
} from '../tools/doctor/finding.ts'
import { LONGEST_QUIET_MS } from '../tools/doctor/quiet-stream.ts'
import type { Machine, Wishes } from '../tools/doctor/subject.ts'
import { faultLine } from '../document/fault.ts'
import { ownAddresses } from '../http/upstream/exposure.ts'
import { prepare } from '../snapshot/load.ts'
import { readMounts } from '../store/durability.ts'
import { CONFIG, defineCommand, EXIT, jsonFlag, UsageError, value, type Command, type Values } from './command.ts'
import { harmless, paintFor, printData, printLines, type Terminal } from './terminal.ts'
import { configFile, readToken } from './input-files.ts'

const DEFAULT_MESSAGE = 'Hello. Please answer in two or three sentences.'

const OPTIONS = {
  config: CONFIG,
  timeout: { ...value('TIME', 'the time limit of one check; a fetch of keys may take 11s, a run 60s'), default: '5s' },
  'token-file': value('FILE', "a file with a caller's token, to send requests as that caller"),
  url: value('URL', "the gateway's URL for clients, with the first upstream's path (default: from the configuration)"),
  run: value('AGENT', 'runs this agent once through the gateway and checks that events arrive one by one; leaves a new thread'),
  message: value('TEXT', 'the message to the agent'),
  quiet: {
    ...value('TIME', 'with --url and a token, how long a stream without events has to stay open; 0s for no such check'),
    default: '60s',
  },
  json: jsonFlag('{"healthy", "counts", "findings"}'),
} as const

export function doctorOn(machine: () => Machine): Command {
  return defineCommand({
    about: `Checks the store, the issuers, the upstreams and the running gateway, as the gateway and its clients use them. Each problem and
warning comes with a remedy. A check that cannot be made is reported as unknown. The doctor changes nothing without --run. With
--run it creates a thread, which stays in the upstream and in the ownership table.`,
    options: OPTIONS,
    exitCodes: {
      0: 'no problem and no warning; unknown counts as neither',
      1: 'a problem or a warning, or an invalid configuration',
    },
    examples: [
      'threadwarden doctor',
      'threadwarden doctor --token-file token.txt --url https://chat.example.com/api/copilotkit --run default',
    ],

    async run(values, terminal) {
      const file = configFile(terminal, values)
      const findings = await diagnose(terminal, file, readWishes(values), machine())
      if (values.json) printData(terminal, asData(findings))
      else printLines(terminal, report(findings.map(harmlessFinding), paintFor(terminal.stdout, terminal.env)))
      return findings.some(isFault) ? EXIT.failure : EXIT.fine
    },
  })
}

export const command = doctorOn(() => ({ mounts: readMounts(), addresses: ownAddresses() }))

async function diagnose(terminal: Terminal, file: string, wishes: Wishes, machine: Machine): Promise<readonly Finding[]> {
  const prepared = prepare(file, terminal.env)
  if (!prepared.ok) {
    const faults = prepared.faults.map((fault) =>
      problem(faultLine(fault), 'correct it, and check it with threadwarden validate'),
    )
    return [...faults.map(ofConfiguration), { check: 'everything else', ...notChecked('the configuration is invalid') }]
  }
  const { warnings } = prepared.value
  const found = warnings.map(({ hint, ...one }) => warning(faultLine(one), hint ?? 'docs/reference/configuration.md'))
  const first = (found.length === 0 ? [ok(`${file} is valid`)] : found).map(ofConfiguration)
  const progress = makeProgress(terminal)
  try {
    return [...first, ...(await examine(prepared.value, wishes, machine, progress.tell))]
  } finally {
    progress.end()
  }
}

function ofConfiguration(result: Result): Finding {
  return { check: 'configuration', ...result }
}

function readWishes({ timeout, 'token-file': tokenFile, url, run, message, quiet }: Values<typeof OPTIONS>): Wishes {
  const limit = duration.safeParse(timeout)
  if (!limit.success || limit.data === 0) throw new UsageError(`--timeout ${timeout} is not a duration: write 500ms, 10s or 1m`)
  if (run === '') throw new UsageError('--run must name an agent')
  if (message !== undefined && run === undefined) throw new UsageError('--message can only be combined with --run')
  return {
    timeout: limit.data,
    token: tokenFile === undefined ? null : readToken(tokenFile),
    url: url === undefined ? null : readUrl(url),
    run: run === undefined ? null : { agentId: run, message: message ?? DEFAULT_MESSAGE },
    quiet: readQuiet(quiet),
  }
}

function readQuiet(text: string): number {
  const { data, success } = duration.safeParse(text)
  if (success && data % 1000 === 0 && data <= LONGEST_QUIET_MS) return data
  throw new UsageError(`--quiet ${text} is not a time in whole seconds, of at most ${seconds(LONGEST_QUIET_MS)}: write 30s or 2m`)
}

function readUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new UsageError('--url must be an address such as https://chat.example.com/api/copilotkit')
  if (url.username !== '' || url.password !== '')
    throw new UsageError('--url contains a password: pass a token with --token-file')
  if (url.search !== '' || url.hash !== '') throw new UsageError('--url has a query or a fragment: it must end with the path')
  return url.href.replace(/\/+$/, '')
}

/** Makes each part of a finding one line: it may quote the answer of an upstream, an issuer or a server. */
function harmlessFinding({ check, level, message, remedy }: Finding): Finding {
  const line = { check: harmless(check), level, message: harmless(message) }
  return remedy === undefined ? line : { ...line, remedy: harmless(remedy) }
}

/** A wait that is longer than this is announced, in milliseconds. */
const LONG_WAIT = 30_000

function makeProgress({ stderr }: Terminal): {
  readonly tell: (check: string, limit: number) => void
  readonly end: () => void
} {
  if (!stderr.isTTY) return { tell: () => {}, end: () => {} }
  const show = (text: string): void => void stderr.write(`\r\u001b[2K${text}`)
  const most = (limit: number): string => (limit < LONG_WAIT ? '' : ` (at most ${seconds(limit)})`)
  return { tell: (check, limit) => show(`${harmless(check)}${most(limit)} …`), end: () => show('') }
}
