/**
 * A self-hosted AG-UI endpoint that does not trust the proxies in front of it: it verifies the forwarded token (or the assertion) itself,
 * before the run starts. POST on the root path, the run's input as body, its events as a stream in the type that `Accept` asks for.
 */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AGUIEvent, type RunAgentInput, RunAgentInputSchema } from '@ag-ui/core'
import { EventEncoder } from '@ag-ui/encoder'
import { type AgentUser, KeysUnavailable, NotAuthenticated } from '../src/sdk/agent/index.ts'
import { type Trust, type UserReader, userReader } from './agent-user.ts'
import { ChatAgent } from './chat-agent.ts'
import { command, noWords, portOf, required, untilStopped } from './command.ts'
import { BodyTooLarge, listen, readBody, remember, sendJson, stop } from './http.ts'

/** A chat with attachments resends them with every message. */
const MOST_BYTES = 64 * 1024 * 1024

export interface AgentOptions extends Trust {
  /** 0, the default: any free port. */
  readonly port?: number
  readonly host?: string
}

/** A version of AG-UI: how an agent of it reads runs and writes events. */
export interface Protocol<Input, Event> {
  /** Throws if the value is no run input. */
  readonly parse: (value: unknown) => Input
  readonly encoder: (accept: string | undefined) => {
    getContentType(): string
    encodeBinary(event: Event): Uint8Array
  }
  readonly run: (input: Input, user: AgentUser, signal: AbortSignal) => AsyncIterable<Event>
}

/** A request as the agent got it; for tests. It holds the caller's token: don't print it. */
export interface AgentRequest<Input = RunAgentInput> {
  /** Whether an `Authorization` header came along, good or bad. */
  readonly authorization: boolean
  readonly headers: IncomingHttpHeaders
  /** Absent if the request was refused before its body counted. */
  input?: Input
  /** Absent likewise. */
  user?: AgentUser
}

export interface Agent<Input = RunAgentInput> {
  /** Where to POST runs. */
  readonly url: string
  /** The last requests, oldest first. */
  readonly requests: AgentRequest<Input>[]
  close(): Promise<void>
}

const AG_UI_0: Protocol<RunAgentInput, AGUIEvent> = {
  parse: (value) => RunAgentInputSchema.parse(value),
  encoder: (accept) => new EventEncoder(accept === undefined ? {} : { accept }),
  run: (input, user, signal) => new ChatAgent({ configurable: { auth_user: user } }).run(input, signal),
}

/** Starts the agent. */
export function startAgent(options: AgentOptions): Promise<Agent> {
  return serveAgent(options, AG_UI_0)
}

/** Starts an agent of any version. */
export async function serveAgent<Input extends { readonly threadId: string }, Event>(
  { port = 0, host = '127.0.0.1', ...trust }: AgentOptions,
  protocol: Protocol<Input, Event>,
): Promise<Agent<Input>> {
  const requests: AgentRequest<Input>[] = []
  const users = userReader(trust)
  const server = createServer((request, response) => {
    const { headers } = request
    const record: AgentRequest<Input> = { authorization: headers.authorization !== undefined, headers }
    remember(requests, record)
    answer(request, response, record, users, protocol).catch((error: unknown) => refuse(response, error))
  })
  const { origin } = await listen(server, port, host)
  return { url: `${origin}/`, requests, close: () => stop(server) }
}

async function answer<Input extends { readonly threadId: string }, Event>(
  request: IncomingMessage,
  response: ServerResponse,
  record: AgentRequest<Input>,
  users: UserReader,
  protocol: Protocol<Input, Event>,
): Promise<void> {
  if (request.url !== '/') return sendJson(response, 404, { error: 'not found' })
  if (request.method !== 'POST') return sendJson(response, 405, { error: 'method not allowed' }, { allow: 'POST' })
  // `headers` holds the first of two Authorization headers only; two are no credential.
  record.user = await users.read(request.headersDistinct)
  record.input = parse(await readBody(request, MOST_BYTES), protocol)
  users.admit(record.user, record.input.threadId)
  const encoder = protocol.encoder(request.headers.accept)
  const left = new AbortController()
  response.once('close', () => left.abort())
  response.writeHead(200, { 'content-type': encoder.getContentType(), 'cache-control': 'no-cache' })
  for await (const event of protocol.run(record.input, record.user, left.signal)) response.write(encoder.encodeBinary(event))
  response.end()
}

function parse<Input>(body: string, protocol: Pick<Protocol<Input, unknown>, 'parse'>): Input {
  try {
    return protocol.parse(JSON.parse(body))
  } catch (error) {
    throw new BadInput('the body is no run input', { cause: error })
  }
}

class BadInput extends Error {}

function refuse(response: ServerResponse, error: unknown): void {
  if (response.headersSent) response.destroy()
  else if (error instanceof NotAuthenticated) sendJson(response, 401, { error: error.code }, { 'www-authenticate': 'Bearer' })
  else if (error instanceof BadInput) sendJson(response, 400, { error: error.message })
  // The rest of the body is still on its way, so the connection can't be used again.
  else if (error instanceof BodyTooLarge) sendJson(response, 413, { error: error.message }, { connection: 'close' })
  else if (error instanceof KeysUnavailable) sendJson(response, 503, { error: error.code })
  else sendJson(response, 500, { error: 'internal error' })
}

const USAGE = `A self-hosted agent that verifies its callers' tokens.

  node agent.ts --issuer URL --audience A [--port N] [--host H]   start it; prints its URL

  --issuer    whose tokens count
  --audience  for whom they have to be issued
  --port      the port (default: any free one)
  --host      the address to listen on (default: 127.0.0.1)
`

if (import.meta.main) {
  await command(USAGE, ['port', 'host', 'issuer', 'audience'], async (words, values) => {
    noWords(words)
    const { host } = values
    const trust = { issuer: required(values, 'issuer'), audience: required(values, 'audience') }
    const agent = await startAgent({ port: portOf(values), ...(host !== undefined && { host }), ...trust })
    process.stdout.write(`${agent.url}\n`)
    await untilStopped(agent)
  })
}
