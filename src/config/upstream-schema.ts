/** The schema of the upstreams, runtimes and self-hosted agents: their addresses, and how the gateway connects. */
import { z } from 'zod'
import { isAgentId } from '../core/route/ids.ts'
import { endsLikeRoute, TRANSPORTS } from '../core/route/transport.ts'
import { duration, text } from '../document/quantities.ts'

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
  ca: text.optional().describe('A PEM file with the private CA of the upstream.'),
  forwardAuthorization: z.boolean().default(true).describe("Whether the caller's Authorization header goes upstream."),
  headers: z
    .record(
      z.string().regex(/^[!#$%&'*+\-.^`|~0-9A-Za-z]+$/, 'is not a header name'),
      z.string().regex(/^[\x20-\x7e\t]*$/, 'is not a header value'),
    )
    .default({})
    .describe("Sent with every request; they win over the caller's."),
  timeouts: z
    .strictObject({
      connect: duration.prefault('2s').describe('To open a connection.'),
      headers: duration.prefault('120s').describe('From the request to the head of the answer; 0s: none.'),
      body: duration.prefault('0s').describe('Longest silence within an answer; 0s: none.'),
    })
    .prefault({})
    .describe('How long the upstream may take.'),
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
  url: urlOf('upstream.basePath').describe('Where the runtime listens. https verifies its certificate.'),
  basePath: basePath
    .refine((path) => !endsLikeRoute(path), 'ends like a route of the runtime, which could take envelopes for it')
    .describe('The path under which the runtime serves its routes, or the one path of a single-route runtime.'),
  publicPath: basePath.optional().describe('Where callers find them; by default basePath.'),
  transport: z
    .enum(['auto', ...TRANSPORTS])
    .default('auto')
    .describe('How the runtime takes requests; auto asks it, and goes on asking.'),
  userScoped: z.boolean().default(false).describe('true for the managed platform: subscriptions and join codes may pass.'),
  ...reaching,
}

export const upstreamSchema = z.strictObject(runtime).describe('The runtime that is protected.')

const ofItsOwn = {
  scope: z
    .string()
    .regex(/^[a-z0-9-]+$/, 'is no key of an upstream | a-z, 0-9 and -')
    .optional()
    .describe(
      'Whose threads these are in the ownership table: the key of another upstream with the same threads, `upstream` for the first one, or its own key, which is the default.',
    ),
  assertionAudience: text
    .optional()
    .describe(
      'The `aud` of assertions that go there; by default identity.assertion.audience, and beside other upstreams / and the key.',
    ),
}

const key = z
  .string()
  .regex(/^[a-z0-9-]+$/, 'is no key of an upstream | a-z, 0-9 and -')
  .refine(isAgentId, 'has a meaning of its own | take another key')

export const upstreamsSchema = z
  .record(
    key,
    z.strictObject({
      ...runtime,
      unknownThread: z
        .enum(['claim', 'verify', 'deny'])
        .optional()
        .describe('As ownership.unknownThread, which holds where this is left out.'),
      lists: z.enum(['upstream', 'table', 'auto']).optional().describe('As ownership.lists, which holds where this is left out.'),
      ...ofItsOwn,
    }),
  )
  .default({})
  .describe('Further runtimes, by a key of your choice: the scope of their threads in the ownership table, for ever.')

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
    z.strictObject({
      url: urlOf('path').describe('Where the agent listens. https verifies its certificate.'),
      path: agentPath.default('/').describe('Where it takes runs: its root path.'),
      publicPath: basePath.optional().describe('Where callers find it; by default /agents/ and its key.'),
      unknownThread: z
        .enum(['claim', 'deny'])
        .optional()
        .describe('As ownership.unknownThread; has to be said where that is verify: an agent has no history to look into.'),
      ...ofItsOwn,
      ...reaching,
    }),
  )
  .default({})
  .describe(
    'AG-UI endpoints, by the agent id that policies call them by: the scope of their threads in the ownership table, for ever.',
  )
