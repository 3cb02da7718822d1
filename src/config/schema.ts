/**
 * The configuration: one schema, from which the types, the checks and the schema published for editors all come.
 * Names and meanings are stable (design "config/threadwarden.yaml"). A key whose work is still to come takes its inert
 * value only and is refused by name at any other.
 */
import { z } from 'zod'
import { isPointer } from '../core/pointer.ts'
import { isFetchable } from '../core/addresses.ts'
import { endsLikeRoute, TRANSPORTS } from '../core/transport.ts'
import { bodySize, duration, size } from './quantities.ts'

// prettier-ignore
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'HS256', 'HS384', 'HS512'] as const

const port = z
  .union([z.int(), z.string().regex(/^\d+$/).transform(Number)], 'is not a port number | 0 to 65535')
  .refine((value) => value >= 0 && value <= 65_535, 'is not a port number | 0 to 65535')

const pointer = z
  .string()
  .refine((text) => text !== '' && isPointer(text), 'is not a JSON pointer | write /sub or /realm_access/roles')

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

/** A key that is announced and not there yet. */
function absent(hint: string): z.ZodOptional<z.ZodAny> {
  return z
    .any()
    .refine((value) => value === undefined, `is not supported by this version yet | ${hint}`)
    .optional()
}

/** A name that a claim is compared with: a blank or a star would look like "any", and stand for nothing. */
const exactName = z
  .string()
  .min(1)
  .refine((text) => text === text.trim() && text !== '*', 'is compared to the letter | write it out, without blanks around it')

const issuer = z
  .strictObject({
    issuer: exactName.describe('The `iss` of its tokens; with discovery also where its metadata is.'),
    audiences: z.array(exactName).min(1, 'must name at least one audience').describe('A token must be for one of these.'),
    audienceClaim: pointer.default('/aud').describe('Where the audience is: /aud, Clerk /azp, Cognito /client_id.'),
    algorithms: z
      .array(z.enum(ALGORITHMS))
      .min(1, 'must name at least one algorithm')
      .describe('Signature algorithms that are accepted.'),
    jwksUri: z.url().optional().describe('Where the keys are, instead of discovery.'),
    publicKeyFile: z.string().min(1).optional().describe('A PEM file with one public key, instead of discovery.'),
    secretFile: z.string().min(1).optional().describe('A file with the shared secret of HS256, HS384 or HS512.'),
    introspection: absent('opaque tokens come later'),
    claims: z
      .strictObject({
        id: pointer.default('/sub'),
        name: pointer.default('/name'),
        role: pointer.default('/role'),
        permissions: pointer.default('/permissions'),
      })
      .prefault({})
      .describe('JSON pointers to the user in the claims.'),
  })
  .superRefine((value, context) => {
    const sources = [value.jwksUri, value.publicKeyFile, value.secretFile].filter((source) => source !== undefined)
    if (sources.length > 1)
      context.addIssue('names more than one source of keys | keep one of jwksUri, publicKeyFile, secretFile')
    const secret = value.algorithms.filter((algorithm) => algorithm.startsWith('HS'))
    // A shared secret and a public key are told apart by where they come from, never by what a token says (RFC 8725 §3.1).
    if (value.secretFile === undefined && secret.length > 0) {
      context.addIssue({
        code: 'custom',
        path: ['algorithms'],
        message: `${secret.join(', ')} needs secretFile | public keys serve RS, PS, ES and EdDSA`,
      })
    }
    if (value.secretFile !== undefined && secret.length !== value.algorithms.length) {
      context.addIssue({ code: 'custom', path: ['algorithms'], message: 'secretFile serves HS256, HS384 and HS512 only' })
    }
    for (const [key, url] of [
      ['issuer', sources.length === 0 ? value.issuer : undefined],
      ['jwksUri', value.jwksUri],
    ] as const) {
      if (url !== undefined && !isFetchable(url)) {
        context.addIssue({
          code: 'custom',
          path: [key],
          message: 'keys are fetched by https only | http is for loopback addresses',
        })
      }
    }
  })

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
    admin: absent('the operator API comes later'),
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
        issuers: z.record(z.string().regex(/^[a-z0-9-]+$/, 'an issuer key is of a-z, 0-9 and -'), issuer).default({}),
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
        if (new Set(issuers.map((one) => one.issuer)).size < issuers.length) {
          context.addIssue({
            code: 'custom',
            path: ['issuers'],
            message: 'two entries have the same issuer | a token must have one meaning',
          })
        }
      })
      .prefault({}),
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
        tokenExpiry: notYet(z.enum(['close', 'grace', 'ignore']), 'tokenExpiry', ['ignore']).default('ignore'),
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
  .meta({ title: 'Threadwarden configuration' })

/** `*`, or an origin as browsers write it (RFC 6454 §6.2): no wildcard, path or default port. */
function isOrigin(text: string): boolean {
  return text === '*' || (AUTHORITY_URL.test(text) && URL.canParse(text) && new URL(text).origin === text)
}

/** A configuration that passed the schema: durations in milliseconds, sizes in bytes, base paths `''` or `/a/b`. */
export type Config = z.output<typeof configSchema>

/** One issuer of it. */
export type IssuerConfig = Config['authentication']['issuers'][string]
