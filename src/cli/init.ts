/** `threadwarden init`: asks the upstream and the issuer what they are, and writes a configuration. */
import { faultLine, type Fault } from '../document/fault.ts'
import { writeConfiguration, type Found, type Written } from '../tools/init/configuration.ts'
import { askIssuer } from '../tools/init/issuer.ts'
import { NotFound } from '../tools/init/not-found.ts'
import { askUpstream } from '../tools/init/upstream.ts'
import { CommandFailed, defineCommand, EXIT, UsageError } from './command.ts'
import { askQuestions, type Inquiries } from './init/questions.ts'
import {
  isComplete,
  issuerPlace,
  OPTIONS,
  readRequest,
  STDOUT,
  upstreamPlace,
  wishesOf,
  type CompleteRequest,
} from './init/request.ts'
import { requireFree, save } from './init/save.ts'
import { complain, print, type Terminal } from './terminal.ts'

export const command = defineCommand({
  usage: ['--upstream URL --issuer URL', ''],
  about: `Asks the upstream and the issuer what they are, and writes a commented configuration. It prints what it found out, and what it
had to assume. On a terminal, it asks you for the upstream and the issuer if you do not name them.

It sends requests without a user, follows no redirect and starts no run. It writes no secret: the value of a header stays in its
file. If the upstream or the issuer gives no usable answer, it writes nothing.`,
  options: OPTIONS,
  exitCodes: { 0: 'written', 1: 'not written' },
  examples: [
    'threadwarden init --upstream http://127.0.0.1:4000/api/copilotkit --issuer https://login.example.com/',
    'threadwarden init --upstream https://agent.internal/ --agent research --issuer https://login.example.com/ --upstream-header x-service-token=token.txt',
    'threadwarden init',
  ],

  async run(values, terminal) {
    const request = readRequest(values)
    const { stdin, stderr } = terminal
    if (!isComplete(request) && !(stdin.isTTY === true && stderr.isTTY === true)) {
      throw new UsageError('--upstream URL and --issuer URL are required without a terminal')
    }
    requireFree(request.out, values.force)
    const inquiries = values.offline ? NO_INQUIRIES : inquiriesWithin(request.timeout)
    const [complete, found] = isComplete(request)
      ? ([request, await findOut(terminal, request, inquiries)] as const)
      : await askQuestions(terminal, request, inquiries)
    const written = writeConfiguration(wishesOf(complete), found)
    const warnings = save(terminal, request.out, values.force, written.text)
    report(terminal, request.out, written, warnings)
    return EXIT.fine
  },
})

const NO_INQUIRIES: Inquiries = { upstream: () => Promise.resolve(null), issuer: () => Promise.resolve(null) }

function inquiriesWithin(timeout: number): Inquiries {
  return {
    upstream: (request) => askUpstream(upstreamPlace(request), timeout),
    issuer: (request) => askIssuer(issuerPlace(request)),
  }
}

/** Asks both, so that all failures are reported at once. @throws CommandFailed */
async function findOut(terminal: Terminal, request: CompleteRequest, inquiries: Inquiries): Promise<Found> {
  const [upstream, issuer] = await Promise.allSettled([inquiries.upstream(request), inquiries.issuer(request)])
  if (upstream.status === 'fulfilled' && issuer.status === 'fulfilled') return { upstream: upstream.value, issuer: issuer.value }
  for (const one of [upstream, issuer]) {
    if (one.status === 'fulfilled') continue
    const reason: unknown = one.reason
    if (!(reason instanceof NotFound)) throw reason
    complain(terminal, `error: ${reason.message}`)
    complain(terminal, `  → ${reason.remedy}`)
  }
  throw new CommandFailed('nothing was written; --offline writes a configuration without asking')
}

function report(terminal: Terminal, out: string, { found, assumed }: Written, warnings: readonly Fault[]): void {
  const tell = out === STDOUT ? complain : print
  const part = (title: string, lines: readonly string[]): void => {
    if (lines.length === 0) return
    tell(terminal, '')
    tell(terminal, title)
    for (const line of lines) tell(terminal, `  ${line}`)
  }
  if (out !== STDOUT) tell(terminal, `${out} is written, and valid`)
  part('Found out:', found)
  part('Assumed, please check:', assumed)
  part('Warnings, as of threadwarden validate:', warnings.map(faultLine))
  const file = out === STDOUT ? 'FILE' : out
  part('Next:', [
    `threadwarden serve --config ${file}`,
    `threadwarden doctor --config ${file} --token-file TOKEN   (a token of a user of yours)`,
    'docs/how-to/deploy/npm.md, and then docs/how-to/deploy/production-checklist.md',
  ])
}
