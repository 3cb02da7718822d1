/** The schema of the upstreams, runtimes and self-hosted agents: their addresses, and how the gateway connects. */
import { z } from 'zod'
import { isAgentId } from '../core/route/ids.ts'
import { endsLikeRoute, TRANSPORTS } from '../core/route/transport.ts'
import { duration, text } from '../document/quantities.ts'
import { upstreamTlsSchema } from './tls-schema.ts'

/** Scheme, host and port, with nothing in them that a URL parser would change. */
export const AUTHORITY_URL = /^https?:\/\/(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*)|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?\/?$/

const basePath = z
  .string()
  .regex(
    /^(?:\/|(?:\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+)$/,
    'is not a base path | write /api/copilotkit: letters, digits, . _ ~ -, no trailing slash',
  )
  .transform((path) => (path === '/' ? '' : path))

const reaching = {
  ca: text.optional().describe('A PEM file with the private CA of the upstream; the same as tls.ca.'),
  tls: upstreamTlsSchema.optional(),
  forwardAuthorization: z.boolean().default(true).describe("Whether the gateway forwards the caller's Authorization header."),
  forwardCookies: z
    .array(z.string())
    .default([])
    .describe('Credential cookies that the gateway forwards after it has verified them. It forwards no other cookie.'),
  headers: z
    .record(
      z.string().regex(/^[!#$%&'*+\-.^`|~0-9A-Za-z]+$/, 'is not a header name'),
      z.string().regex(/^[\x20-\x7e\t]*$/, 'is not a header value'),
    )
    .default({})
    .describe("Headers that the gateway sets on every upstream request. They replace the caller's headers."),
  timeouts: z
    .strictObject({
      connect: duration.prefault('2s').describe('The time to open a connection.'),
      headers: duration.prefault('120s').describe('The time to the head of the response; 0s for no limit.'),
      body: duration.prefault('0s').describe('The longest silence within a response; 0s for no limit.'),
    })
    .prefault({})
    .describe('Timeouts of upstream requests.'),
}

/** Two files could differ, and only one of them would be used. */
function oneCa(
  { ca, tls }: { readonly ca?: string | undefined; readonly tls?: { readonly ca?: string | undefined } | undefined },
  context: z.RefinementCtx,
): void {
  if (ca === undefined || tls?.ca === undefined) return
  context.addIssue({ code: 'custom', path: ['ca'], message: 'is also in tls.ca | keep one of the two' })
}

function urlOf(elsewhere: string) {
  return z
    .url('is not a URL | write http://127.0.0.1:4000')
    .refine(
      (text) => AUTHORITY_URL.test(text) && URL.canParse(text),
      `must be http(s)://host:port alone | the path goes to ${elsewhere}`,
    )
}

const runtime = {
  url: urlOf('upstream.basePath').describe('The address of the runtime: http(s)://host:port. https verifies the certificate.'),
  basePath: basePath
    .refine((path) => !endsLikeRoute(path), 'ends like a route of the runtime, which could take envelopes for it')
    .describe('The path under which the runtime serves its routes, or the one path of a single-route runtime.'),
  publicPath: basePath.optional().describe('The path that callers use; by default basePath.'),
  transport: z
    .enum(['auto', ...TRANSPORTS])
    .default('auto')
    .describe('How the runtime accepts requests; auto asks the runtime.'),
  userScoped: z.boolean().default(false).describe('true if the upstream itself separates users, as the managed platform does.'),
  ...reaching,
}

export const upstreamSchema = z
  .strictObject({
    ...runtime,
    kind: z
      .literal('runtime', 'is only for upstreams | write the LangGraph server under upstreams, by a key of your choice')
      .optional()
      .describe('A CopilotKit runtime. A LangGraph server is written under upstreams.'),
  })
  .superRefine(oneCa)
  .describe('The runtime behind the gateway.')

interface OfEitherKind {
  readonly kind: 'runtime' | 'langgraph'
  readonly basePath?: string | undefined
  readonly transport: string
  readonly userScoped: boolean
  readonly lists?: string | undefined
  readonly headers: Readonly<Record<string, string>>
}

function ofItsKind(
  { kind, basePath: path, transport, userScoped, lists, headers }: OfEitherKind,
  context: z.RefinementCtx,
): void {
  const fault = (key: string, message: string): void => context.addIssue({ code: 'custom', path: [key], message })
  if (kind === 'runtime') {
    if (path === undefined) fault('basePath', 'is missing | write the path under which the runtime serves its routes')
    return
  }
  const only = 'is only for runtimes | remove it'
  if (transport !== 'auto') fault('transport', only)
  if (userScoped) fault('userScoped', only)
  if (lists !== undefined) fault('lists', only)
  // The server then takes every caller for its Studio, whom its authentication does not ask.
  const studio = Object.keys(headers).find((name) => name.toLowerCase() === 'x-auth-scheme')
  if (studio !== undefined) fault('headers', `${studio} would switch off the authentication of the server | remove it`)
}

const ofItsOwn = {
  scope: z
    .string()
    .regex(/^[a-z0-9-]+$/, 'is not a key of an upstream | use a-z, 0-9 and -')
    .optional()
    .describe(
      'The scope of its threads in the ownership table: the key of the upstream with the same threads, `upstream`, or its own key (the default).',
    ),
  assertionAudience: text
    .optional()
    .describe(
      'The `aud` of assertions for this upstream; by default identity.assertion.audience, with several upstreams followed by / and the key.',
    ),
}

const key = z
  .string()
  .regex(/^[a-z0-9-]+$/, 'is not a key of an upstream | use a-z, 0-9 and -')
  .refine(isAgentId, 'has a meaning of its own | take another key')

export const upstreamsSchema = z
  .record(
    key,
    z
      .strictObject({
        ...runtime,
        kind: z
          .enum(['runtime', 'langgraph'], 'is not a kind of upstream | write runtime or langgraph')
          .default('runtime')
          .describe('A CopilotKit runtime, or a LangGraph API server.'),
        basePath: runtime.basePath
          .optional()
          .describe(`${String(runtime.basePath.description)} Required for a runtime; by default / for a LangGraph server.`),
        publicPath: basePath
          .optional()
          .describe('The path that callers use; by default basePath, and for a LangGraph server / and the key.'),
        unknownThread: z.enum(['claim', 'verify', 'deny']).optional().describe('As ownership.unknownThread, for this upstream.'),
        lists: z.enum(['upstream', 'table', 'auto']).optional().describe('As ownership.lists, for this upstream.'),
        ...ofItsOwn,
      })
      .superRefine(oneCa)
      .superRefine(ofItsKind),
  )
  .default({})
  .describe(
    'Further runtimes and LangGraph servers, by a key of your choice. The key is the scope of their threads: do not rename it.',
  )

/** The path to which an agent's runs are POSTed: like a base path, but a trailing slash is part of it. */
const agentPath = z
  .string()
  .regex(
    /^\/(?:[A-Za-z0-9_~-][A-Za-z0-9._~-]*(?:\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*\/?)?$/,
    'is not a path | write /, or /agents/research: letters, digits, . _ ~ -',
  )

/** Self-hosted agents (docs/contributing/specification-map.md). */
export const agentsSchema = z
  .record(
    key,
    z
      .strictObject({
        url: urlOf('path').describe('The address of the agent: http(s)://host:port. https verifies the certificate.'),
        path: agentPath.default('/').describe('The path to which the gateway POSTs runs.'),
        publicPath: basePath.optional().describe('The path that callers use; by default /agents/ and the key.'),
        unknownThread: z
          .enum(['claim', 'deny'])
          .optional()
          .describe(
            'As ownership.unknownThread. Required if that is verify, because the gateway cannot read the history of an agent.',
          ),
        ...ofItsOwn,
        ...reaching,
      })
      .superRefine(oneCa),
  )
  .default({})
  .describe('AG-UI endpoints, by their agent id in policies. The key is the scope of their threads: do not rename it.')
