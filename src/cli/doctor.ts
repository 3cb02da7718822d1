/** `threadwarden doctor`: checks everything around a gateway as a client would, and reports problems. */
import { duration } from '../document/quantities.ts'
import { examine } from '../tools/doctor/examine.ts'
import { isFault, notChecked, ok, problem, warning, type Finding } from '../tools/doctor/finding.ts'
import { asData, report } from '../tools/doctor/report.ts'
import type { Machine, Wishes } from '../tools/doctor/subject.ts'
import { faultLine } from '../document/fault.ts'
import { ownAddresses } from '../http/upstream/exposure.ts'
import { prepare } from '../snapshot/load.ts'
import { readMounts } from '../store/durability.ts'
import { EXIT, printData, printLines, readOptions, UsageError, type Command } from './command.ts'
import { tokenFrom } from './input-files.ts'
import { harmless } from './terminal.ts'

const DEFAULT_TIMEOUT = '5s'
const DEFAULT_MESSAGE = 'Hello. Please answer in two or three sentences.'

const OPTIONS = {
  config: { type: 'string' },
  timeout: { type: 'string', default: DEFAULT_TIMEOUT },
  'token-file': { type: 'string' },
  url: { type: 'string' },
  run: { type: 'string' },
  message: { type: 'string' },
  json: { type: 'boolean' },
} as const

const HELP = `threadwarden doctor --config FILE [--timeout 5s] [--token-file FILE] [--url URL] [--run AGENT [--message TEXT]] [--json]

Looks at the store, the issuers, the upstreams and the gateway itself, as the gateway and its clients do, and says of each
finding what to do about it. Nothing is changed and nothing is run, unless --run is given. What could not be checked is
said, too.

  --config FILE      the configuration (YAML or JSON)
  --timeout 5s       how long one check may take; fetching keys may take 11s, a run 60s
  --token-file FILE  a file with a caller's token, to ask as that caller
  --url URL          the gateway as clients reach it, with its path: the runtimeUrl of a frontend. By default where
                     the configuration says that it listens. It is that of the first upstream: others are looked for at the
                     same origin, under their public paths
  --run AGENT        runs this agent once through the gateway, on a new thread, to see whether events come one by one: the
                     one under agents that has this key, or one of the first runtime
  --message TEXT     what to say to it
  --json             prints {"healthy", "counts", "findings"} on stdout

Exit codes: 0 no problem and no warning (what is unknown alone counts as neither), 1 problems, warnings or an invalid
configuration, 2 wrong usage.`

export function doctorOn(machine: () => Machine): Command {
  return {
    summary: 'looks for what is wrong around a gateway',
    help: HELP,
    async run(args) {
      const options = readOptions(args, OPTIONS)
      if (options.config === undefined) throw new UsageError('--config FILE is missing')
      const wishes = readWishes(options)
      const findings = await diagnose(options.config, wishes, machine())
      if (options.json === true) printData(asData(findings))
      else printLines(report(findings.map(harmlessFinding)))
      return findings.some(isFault) ? EXIT.failure : EXIT.fine
    },
  }
}

export const doctor = doctorOn(() => ({ mounts: readMounts(), addresses: ownAddresses() }))

async function diagnose(file: string, wishes: Wishes, machine: Machine): Promise<readonly Finding[]> {
  const prepared = prepare(file, process.env)
  if (!prepared.ok) {
    const faults = prepared.faults.map((fault) =>
      problem('configuration', faultLine(fault), 'correct it; threadwarden validate checks it again'),
    )
    return [...faults, notChecked('everything else', 'the configuration is invalid')]
  }
  const { config, warnings } = prepared.value
  const first = warnings.map(({ hint, ...one }) => warning('configuration', faultLine(one), hint ?? 'docs/configuration.md'))
  if (first.length === 0) first.push(ok('configuration', `${file} is valid`))
  const progress = makeProgress()
  try {
    return [...first, ...(await examine(config, wishes, machine, progress.tell))]
  } finally {
    progress.end()
  }
}

interface Options {
  readonly timeout: string
  readonly 'token-file'?: string | undefined
  readonly url?: string | undefined
  readonly run?: string | undefined
  readonly message?: string | undefined
}

function readWishes({ timeout, 'token-file': tokenFile, url, run, message }: Options): Wishes {
  const limit = duration.safeParse(timeout)
  if (!limit.success || limit.data === 0) throw new UsageError(`--timeout ${timeout} is not a duration: write 500ms, 10s or 1m`)
  if (run === '') throw new UsageError('--run names an agent')
  if (message !== undefined && run === undefined) throw new UsageError('--message goes with --run')
  return {
    timeout: limit.data,
    token: tokenFile === undefined ? null : tokenFrom(tokenFile),
    url: url === undefined ? null : readUrl(url),
    run: run === undefined ? null : { agentId: run, message: message ?? DEFAULT_MESSAGE },
  }
}

function readUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new UsageError('--url is an address such as https://chat.example.com/api/copilotkit')
  if (url.username !== '' || url.password !== '') throw new UsageError('--url holds a password: a token goes into --token-file')
  if (url.search !== '' || url.hash !== '') throw new UsageError('--url has a query or a fragment: it ends with the path')
  return url.href.replace(/\/+$/, '')
}

/** Makes each part of a finding one line: it may quote the answer of an upstream, an issuer or a server. */
function harmlessFinding({ check, level, message, remedy }: Finding): Finding {
  const line = { check: harmless(check), level, message: harmless(message) }
  return remedy === undefined ? line : { ...line, remedy: harmless(remedy) }
}

function makeProgress(): { readonly tell: (check: string) => void; readonly end: () => void } {
  if (!process.stderr.isTTY) return { tell: () => {}, end: () => {} }
  const show = (text: string): void => void process.stderr.write(`\r\u001b[2K${text}`)
  return { tell: (check) => show(`${harmless(check)} …`), end: () => show('') }
}
