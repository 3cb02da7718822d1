/**
 * A self-hosted AG-UI endpoint that does not trust the proxies in front of it: it verifies the forwarded token (or the assertion) itself,
 * before the run starts. POST on the root path, the run's input as body, its events as a stream in the type that `Accept` asks for.
 */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { type RunAgentInput, RunAgentInputSchema } from '@ag-ui/core'
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

/** A request as the agent got it; for tests. It holds the caller's token: don't print it. */
export interface AgentRequest {
  /** Whether an `Authorization` header came along, good or bad. */
  readonly authorization: boolean
  readonly headers: IncomingHttpHeaders
  /** Absent if the request was refused before its body counted. */
  input?: RunAgentInput
  /** Absent likewise. */
  user?: AgentUser
}

export interface Agent {
  /** Where to POST runs. */
  readonly url: string
  /** The last requests, oldest first. */
  readonly requests: AgentRequest[]
  close(): Promise<void>
}

/** Starts the agent. */
export async function startAgent({ port = 0, host = '127.0.0.1', ...trust }: AgentOptions): Promise<Agent> {
  const requests: AgentRequest[] = []
  const users = userReader(trust)
  const server = createServer((request, response) => {
    const { headers } = request
    const record: AgentRequest = { authorization: headers.authorization !== undefined, headers }
    remember(requests, record)
    answer(request, response, record, users).catch((error: unknown) => refuse(response, error))
  })
  const { origin } = await listen(server, port, host)
  return { url: `${origin}/`, requests, close: () => stop(server) }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  record: AgentRequest,
  users: UserReader,
): Promise<void> {
  if (request.url !== '/') return sendJson(response, 404, { error: 'not found' })
  if (request.method !== 'POST') return sendJson(response, 405, { error: 'method not allowed' }, { allow: 'POST' })
  // `headers` holds the first of two Authorization headers only; two are no credential.
  record.user = await users.read(request.headersDistinct)
  record.input = parse(await readBody(request, MOST_BYTES))
  users.admit(record.user, record.input.threadId)
  await stream(new ChatAgent({ configurable: { auth_user: record.user } }), record.input, request, response)
}

function parse(body: string): RunAgentInput {
  try {
    return RunAgentInputSchema.parse(JSON.parse(body))
  } catch (error) {
    throw new BadInput('the body is no run input', { cause: error })
  }
}

class BadInput extends Error {}

async function stream(agent: ChatAgent, input: RunAgentInput, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const accept = request.headers.accept
  const encoder = new EventEncoder(accept === undefined ? {} : { accept })
  const left = new AbortController()
  response.once('close', () => left.abort())
  response.writeHead(200, { 'content-type': encoder.getContentType(), 'cache-control': 'no-cache' })
  for await (const event of agent.run(input, left.signal)) response.write(encoder.encodeBinary(event))
  response.end()
}

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
