/** The upstream of the configuration: where the runtime is, and how it is spoken to. */
import { z } from 'zod'
import { endsLikeRoute, TRANSPORTS } from '../core/transport.ts'
import { duration } from '../document/quantities.ts'

/** Scheme, host and port, with nothing in them that a URL parser would fold away. */
export const AUTHORITY_URL = /^https?:\/\/(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*)|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?\/?$/

const basePath = z
  .string()
  .regex(
    /^(?:\/|(?:\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+)$/,
    'is not a base path | write /api/copilotkit: letters, digits, . _ ~ -, no trailing slash',
  )
  .transform((path) => (path === '/' ? '' : path))

/** What is said of it. */
export const upstreamSchema = z
  .strictObject({
    url: z
      .url('is not a URL | write http://127.0.0.1:4000')
      .refine(
        (text) => AUTHORITY_URL.test(text) && URL.canParse(text),
        'must be http(s)://host:port alone | the path goes to upstream.basePath',
      )
      .describe('Where the runtime listens. https verifies its certificate.'),
    ca: z.string().min(1).optional().describe('A PEM file with the private CA of the upstream.'),
    basePath: basePath
      .refine((path) => !endsLikeRoute(path), 'ends like a route of the runtime, which could take envelopes for it')
      .describe('The path under which the runtime serves its routes, or the one path of a single-route runtime.'),
    publicPath: basePath.optional().describe('Where callers find them; by default basePath.'),
    transport: z
      .enum(['auto', ...TRANSPORTS])
      .default('auto')
      .describe('How the runtime takes requests; auto asks it, and goes on asking.'),
    userScoped: z.boolean().default(false).describe('true for the managed platform: subscriptions and join codes may pass.'),
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
  })
  .describe('The runtime that is protected.')
