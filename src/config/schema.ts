/**
 * The configuration: one schema, from which the types, the checks and the schema published for editors all come.
 * Names and meanings are stable (design "config/threadwarden.yaml"). A key whose work is still to come takes its inert
 * value only and is refused by name at any other.
 */
import { z } from 'zod'
import { endsLikeRoute, TRANSPORTS } from '../core/transport.ts'
import { identitySchema } from './identity-schema.ts'
import { issuerSchema } from './issuer-schema.ts'
import { bodySize, duration, size } from './quantities.ts'

const port = z
  .union([z.int(), z.string().regex(/^\d+$/).transform(Number)], 'is not a port number | 0 to 65535')
  .refine((value) => value >= 0 && value <= 65_535, 'is not a port number | 0 to 65535')

const basePath = z
  .string()
  .regex(
    /^(?:\/|(?:\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+)$/,
    'is not a base path | write /api/copilotkit: letters, digits, . _ ~ -, no trailing slash',
  )
  .transform((path) => (path === '/' ? '' : path))

/** Scheme, host and port, with nothing in them that a URL parser would fold away. */
const AUTHORITY_URL = /^https?:\/\/(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*)|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?\/?$/

/** A value that is announced and not there yet. */
function notYet<T extends z.ZodType>(schema: T, name: string, inert: readonly unknown[]): T {
  return schema.refine((value) => inert.includes(value), `is not supported by this version yet | ${name}: ${inert.join(' or ')}`)
}

/** The whole configuration. */
export const configSchema = z
  .strictObject({
    version: z.literal(1, 'must be 1'),
    listen: z
      .strictObject({
        host: z.string().min(1).default('0.0.0.0'),
        port: port.default(8080),
        trustedProxies: z
          .array(z.union([z.cidrv4(), z.cidrv6()], 'is not a CIDR | write 10.0.0.0/8'))
          .refine((list) => !list.some((cidr) => cidr.endsWith('/0')), 'would trust everybody | name the proxy networks')
          .default([]),
      })
      .prefault({})
      .describe('The public listener. X-Forwarded-* count only from trustedProxies.'),
    health: z
      .strictObject({ host: z.string().min(1).default('0.0.0.0'), port: port.default(8081) })
      .prefault({})
      .describe('/livez /readyz /startupz /metrics'),
    admin: z
      .strictObject({
        host: z.string().min(1).default('127.0.0.1'),
        port: port.default(9090),
        credential: z.string().min(32, 'is too short | 32 characters at least, made at random').optional(),
        credentialFile: z
          .string()
          .min(1)
          .optional()
          .describe('A file with one or two credentials, a line each; read again with each request.'),
      })
      .refine(
        (admin) => (admin.credential === undefined) !== (admin.credentialFile === undefined),
        'needs credential or credentialFile | one of them: whoever has it may revoke',
      )
      .optional()
      .describe('The operator API; off unless it is there.'),
    enforcement: notYet(z.enum(['enforce', 'observe']), 'enforcement', ['enforce']).default('enforce'),
    upstream: z.strictObject({
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
      forwardAuthorization: z.boolean().default(true),
      headers: z
        .record(
          z.string().regex(/^[!#$%&'*+\-.^`|~0-9A-Za-z]+$/, 'is not a header name'),
          z.string().regex(/^[\x20-\x7e\t]*$/, 'is not a header value'),
        )
        .default({})
        .describe("Sent with every request; they win over the caller's."),
      timeouts: z
        .strictObject({
          connect: duration.prefault('2s'),
          headers: duration.prefault('120s'),
          body: duration.prefault('0s').describe('Longest silence within an answer; 0s: none.'),
        })
        .prefault({}),
    }),
    forwardHeaders: z.array(z.string()).default([]).describe('Caller headers let through besides the built-in few.'),
    cors: z
      .strictObject({
        origins: z
          .array(z.string().refine(isOrigin, 'is not an origin | write https://app.example.com, or "*" alone'))
          .refine((list) => !list.includes('*') || list.length === 1, '"*" stands alone')
          .default([]),
        credentials: z.boolean().default(false),
      })
      .refine((cors) => !(cors.credentials && cors.origins.includes('*')), 'credentials cannot go with "*" | name the origins')
      .prefault({}),
    authentication: z
      .strictObject({
        mode: z.enum(['required', 'optional', 'off']).default('required'),
        clockTolerance: duration.prefault('30s'),
        tokenCache: z.int().min(0).default(10_000).describe('How many verified tokens are remembered; 0: none.'),
        issuers: z.record(z.string().regex(/^[a-z0-9-]+$/, 'an issuer key is of a-z, 0-9 and -'), issuerSchema).default({}),
      })
      .superRefine((value, context) => {
        const issuers = Object.values(value.issuers)
        if (value.mode !== 'off' && issuers.length === 0) {
          context.addIssue({
            code: 'custom',
            path: ['issuers'],
            message: 'is required unless the mode is off | name the identity provider',
          })
        }
        if (issuers.filter((one) => one.introspection !== undefined).length > 1) {
          context.addIssue({
            code: 'custom',
            path: ['issuers'],
            message: 'two entries have introspection | an opaque token does not say whose it is: one issuer at most',
          })
        }
        if (new Set(issuers.map((one) => one.issuer)).size < issuers.length) {
          context.addIssue({
            code: 'custom',
            path: ['issuers'],
            message: 'two entries have the same issuer | a token must have one meaning',
          })
        }
      })
      .prefault({}),
    identity: identitySchema,
    ownership: z.strictObject({
      store: z
        .string()
        .regex(/^sqlite:.+$|^postgres(?:ql)?:/, 'is not a store | write sqlite:./data/ownership.db')
        .refine(
          (text) => text.startsWith('sqlite:'),
          'PostgreSQL is not supported by this version yet | write sqlite:./data/ownership.db',
        )
        .default('sqlite:./data/ownership.db'),
      unknownThread: z
        .enum(['claim', 'verify', 'deny'])
        .describe('What a run on a thread without an owner does. No default: see docs/configuration.md.'),
      lists: notYet(z.enum(['upstream', 'table', 'auto']), 'lists', ['upstream']).default('upstream'),
    }),
    streams: z
      .strictObject({
        tokenExpiry: z
          .enum(['close', 'grace', 'ignore'])
          .default('grace')
          .describe('What becomes of a stream whose token expires: it ends at once, after the grace, or not.'),
        grace: duration.prefault('10m').describe('Has an effect with tokenExpiry: grace.'),
        keepAlive: duration.prefault('15s').describe('A comment after this much silence of the upstream; 0s: none.'),
      })
      .prefault({}),
    limits: z
      .strictObject({
        body: bodySize.prefault('1MiB'),
        runBody: bodySize.prefault('64MiB').describe('run, connect, suggest, transcribe'),
        bodiesInFlight: size.prefault('512MiB'),
        headers: size.prefault('16KiB'),
        newThreads: notYet(z.string(), 'newThreads', ['off']).default('off'),
      })
      .prefault({}),
    policy: z.string().min(1).optional().describe('The policy file; by default the one that is shipped.'),
    log: z.strictObject({ level: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).default('info') }).prefault({}),
  })
  .refine(({ upstream, identity }) => upstream.transport !== 'auto' || identity.assertion?.replaceAuthorization !== true, {
    path: ['upstream', 'transport'],
    message: "is auto, and the gateway's own questions carry no assertion | name multi-route or single-route",
  })
  .meta({ title: 'Threadwarden configuration' })

/** `*`, or an origin as browsers write it (RFC 6454 §6.2): no wildcard, path or default port. */
function isOrigin(text: string): boolean {
  return text === '*' || (AUTHORITY_URL.test(text) && URL.canParse(text) && new URL(text).origin === text)
}

/** A configuration that passed the schema: durations in milliseconds, sizes in bytes, base paths `''` or `/a/b`. */
export type Config = z.output<typeof configSchema>

/**
 * The file of the ownership store.
 * @param ownership from a configuration that passed the schema: its store is a `sqlite:`
 */
export function storeFile({ store }: Config['ownership']): string {
  return store.slice('sqlite:'.length)
}

/** One issuer of it. */
export type IssuerConfig = Config['authentication']['issuers'][string]
