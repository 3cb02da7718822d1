/** Asks a person at a terminal for what the options of `threadwarden init` do not say. */
import { createInterface } from 'node:readline/promises'
import { DEFAULT_AUDIENCE, type Found } from '../../tools/init/configuration.ts'
import { NotFound, NotRuntime } from '../../tools/init/not-found.ts'
import { CommandFailed, UsageError } from '../command.ts'
import { complain, type Terminal } from '../terminal.ts'
import { DEFAULT_ISSUER_ID, readIssuer, readKey, readPlain, readUpstream, type CompleteRequest, type Request } from './request.ts'

/** Null for what is not asked. */
export interface Inquiries {
  upstream(request: Request & Pick<CompleteRequest, 'upstream'>): Promise<Found['upstream']>
  issuer(request: Request & Pick<CompleteRequest, 'issuer'>): Promise<Found['issuer']>
}

const USUAL_UPSTREAM = 'http://127.0.0.1:4000/api/copilotkit'

type Ask = (question: string, usual: string) => Promise<string>

/** A person who presses Ctrl-C or Ctrl-D ends the command. @throws CommandFailed */
export async function askQuestions(
  terminal: Terminal,
  request: Request,
  inquiries: Inquiries,
): Promise<readonly [CompleteRequest, Found]> {
  // Answers belong to stdout, where a configuration may go.
  const readline = createInterface({ input: terminal.stdin, output: terminal.stderr, terminal: true })
  const closed = new AbortController()
  readline.once('close', () => closed.abort())
  const ask: Ask = async (question, usual) => {
    const answer = await readline.question(`${question}${usual === '' ? '' : ` [${usual}]`}: `, { signal: closed.signal })
    return answer.trim() === '' ? usual : answer.trim()
  }
  try {
    return await converse(terminal, request, inquiries, ask)
  } catch (error) {
    if (!closed.signal.aborted) throw error
    terminal.stderr.write('\n')
    throw new CommandFailed('nothing was written')
  } finally {
    readline.close()
  }
}

async function converse(
  terminal: Terminal,
  request: Request,
  inquiries: Inquiries,
  ask: Ask,
): Promise<readonly [CompleteRequest, Found]> {
  const again = <T>(attempt: () => Promise<T>): Promise<T> => untilGiven(terminal, attempt)
  const [withUpstream, upstream] = await again(() => upstreamFrom(terminal, request, inquiries, ask))
  const [withIssuer, issuer] = await again(async () => {
    const named = request.issuer ?? readIssuer(await ask('Issuer of the tokens', ''))
    const next = { ...withUpstream, issuer: named }
    return [next, await inquiries.issuer(next)] as const
  })
  const issuerId =
    request.issuerId ??
    (await again(async () => readKey('the id', await ask('Your id for it, part of every user id', DEFAULT_ISSUER_ID))))
  const audiences =
    request.audiences.length > 0
      ? request.audiences
      : [await again(async () => readPlain('the audience', await ask('aud of its access tokens', DEFAULT_AUDIENCE)))]
  const origins = request.origins.length > 0 ? request.origins : await again(() => originsFrom(ask))
  return [
    { ...withIssuer, issuerId, audiences, origins },
    { upstream, issuer },
  ]
}

async function upstreamFrom(terminal: Terminal, request: Request, inquiries: Inquiries, ask: Ask) {
  const upstream = request.upstream ?? readUpstream(await ask('URL of the runtime or agent, with its path', USUAL_UPSTREAM))
  const next = { ...request, upstream }
  try {
    return [next, await inquiries.upstream(next)] as const
  } catch (error) {
    if (!(error instanceof NotRuntime)) throw error
    explain(terminal, error)
    const id = await ask('If it is an AG-UI agent, its id (empty: another URL)', '')
    if (id === '') throw new UsageError('correct the URL, such as http://127.0.0.1:4000/api/copilotkit')
    const agent = { ...next, agentId: readKey('the id', id) }
    return [agent, await inquiries.upstream(agent)] as const
  }
}

async function originsFrom(ask: Ask): Promise<readonly string[]> {
  const origin = await ask('Origin of the web page that calls the gateway (empty: the same origin)', '')
  return origin === '' ? [] : [readPlain('the origin', origin)]
}

/** Asks again after an answer that cannot be used. */
async function untilGiven<T>(terminal: Terminal, attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (error instanceof UsageError) complain(terminal, error.message)
      else if (error instanceof NotFound) explain(terminal, error)
      else throw error
    }
  }
}

function explain(terminal: Terminal, { message, remedy }: NotFound): void {
  complain(terminal, message)
  complain(terminal, `  → ${remedy}`)
}
