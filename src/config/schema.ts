/** The configuration schema: source of the types, the checks and the editor schema. Names are stable (docs/reference/configuration.md). */
import { z } from 'zod'
import { identitySchema } from './identity-schema.ts'
import { issuerSchema } from './issuer-schema.ts'
import { storeFault, storeKeys } from './ownership-schema.ts'
import { MAX_VALUES } from '../core/json/read.ts'
import { ageOrOff, bodySize, countOrOff, duration, rateOrOff, size, text } from '../document/quantities.ts'
import { agentsSchema, AUTHORITY_URL, upstreamSchema, upstreamsSchema } from './upstream-schema.ts'

const port = z
  .union([z.int(), z.string().regex(/^\d+$/).transform(Number)], 'is not a port number | 0 to 65535')
  .refine((value) => value >= 0 && value <= 65_535, 'is not a port number | 0 to 65535')

/** A removed rotation setting: without an error, a file that was bounded would grow without limit. */
function rotatedByLogrotate(line: string) {
  const hint = `take it out, and write to /etc/logrotate.d/threadwarden: PATH { ${line} … postrotate kill -HUP PID endscript } (docs/how-to/operate/operations.md#rotating-the-audit-file)`
  return z
    .never(`was removed: the gateway does not rotate the audit file | ${hint}`)
    .optional()
    .describe(`Removed: logrotate rotates the file, with the line: ${line}.`)
}

export const configSchema = z
  .strictObject({
    version: z.literal(1, 'must be 1').describe('The version of this format.'),
    listen: z
      .strictObject({
        host: text.default('0.0.0.0').describe('Its address.'),
        port: port.default(8080).describe('Its port; 0 is any free one.'),
        trustedProxies: z
          .array(z.union([z.cidrv4(), z.cidrv6()], 'is not a CIDR | write 10.0.0.0/8'))
          .refine((list) => !list.some((cidr) => cidr.endsWith('/0')), 'would trust everybody | name the proxy networks')
          .default([])
          .describe('Networks of the proxies in front, whose X-Forwarded-For is believed.'),
      })
      .prefault({})
      .describe('The public listener. X-Forwarded-* count only from trustedProxies.'),
    health: z
      .strictObject({
        host: text.default('0.0.0.0').describe('Its address.'),
        port: port.default(8081).describe('Its port; 0 is any free one.'),
      })
      .prefault({})
      .describe('The listener with /livez /readyz /startupz /metrics.'),
    admin: z
      .strictObject({
        host: text.default('127.0.0.1').describe('Its address. It speaks plain HTTP: leave it on loopback.'),
        port: port.default(9090).describe('Its port; 0 is any free one.'),
        credential: z
          .string()
          .min(32, 'is too short | 32 characters at least, made at random')
          .optional()
          .describe('What it wants as a bearer token; write "${file:…}".'),
        credentialFile: text
          .optional()
          .describe('A file with one or two credentials, a line each; read again with each request.'),
      })
      .refine(
        (admin) => (admin.credential === undefined) !== (admin.credentialFile === undefined),
        'needs credential or credentialFile | one of them: its holder may revoke',
      )
      .optional()
      .describe('The admin API; off unless it is there.'),
    enforcement: z
      .enum(['enforce', 'observe'])
      .default('enforce')
      .describe('observe refuses nothing that rests on ownership alone, and says what enforcing would have refused.'),
    upstream: upstreamSchema.optional(),
    upstreams: upstreamsSchema,
    agents: agentsSchema,
    forwardHeaders: z.array(z.string()).default([]).describe('Caller headers let through besides the built-in few.'),
    cors: z
      .strictObject({
        origins: z
          .array(z.string().refine(isOrigin, 'is not an origin | write https://app.example.com, or "*" alone'))
          .refine((list) => !list.includes('*') || list.length === 1, '"*" stands alone')
          .default([])
          .describe('Exactly as browsers send them, or "*" alone; empty: none.'),
        credentials: z.boolean().default(false).describe("Lets browsers send cookies along; bearer tokens don't need it."),
      })
      .refine((cors) => !(cors.credentials && cors.origins.includes('*')), 'credentials cannot go with "*" | name the origins')
      .prefault({})
      .describe('Pages of which origins may call.'),
    authentication: z
      .strictObject({
        mode: z
          .enum(['required', 'optional', 'off'])
          .default('required')
          .describe('optional: without an Authorization header callers are anonymous. off: nobody is asked, all are one user.'),
        clockTolerance: duration.prefault('30s').describe('Allowed difference of clocks for the times in a token.'),
        tokenCache: z.int().min(0).default(10_000).describe('How many verified tokens are remembered; 0: none.'),
        issuers: z
          .record(z.string().regex(/^[a-z0-9-]+$/, 'an issuer key is of a-z, 0-9 and -'), issuerSchema)
          .default({})
          .describe('Whose tokens are taken, by a key of your choice: part of every user id, for ever.'),
      })
      .superRefine((value, context) => {
        const issuers = Object.values(value.issuers)
        const issue = (message: string): void => context.addIssue({ code: 'custom', path: ['issuers'], message })
        if (value.mode !== 'off' && issuers.length === 0) {
          issue('is required unless the mode is off | name the identity provider')
        }
        if (issuers.filter((one) => one.introspection !== undefined).length > 1) {
          issue('two entries have introspection | an opaque token does not say whose it is: one issuer at most')
        }
        if (new Set(issuers.map((one) => one.issuer)).size < issuers.length) {
          issue('two entries have the same issuer | a token must have one meaning')
        }
      })
      .prefault({})
      .describe('Who may come in.'),
    identity: identitySchema,
    ownership: z
      .strictObject({
        ...storeKeys,
        unknownThread: z
          .enum(['claim', 'verify', 'deny'])
          .describe('What a run on a thread without an owner does. No default: see docs/reference/configuration.md.'),
        lists: z
          .enum(['upstream', 'table', 'auto'])
          .default('upstream')
          .describe('Where lists of threads come from; auto: from the table where the upstream has none.'),
        retention: z
          .strictObject({
            deleted: ageOrOff
              .default('off')
              .describe('How long a deleted thread is remembered of which the upstream holds nothing any more; off: for ever.'),
          })
          .prefault({})
          .describe('What of the table is forgotten by itself.'),
      })
      .superRefine((value, context) => {
        const fault = storeFault(value)
        if (fault !== null) context.addIssue({ code: 'custom', ...fault })
      })
      .describe('Whose thread is whose.'),
    streams: z
      .strictObject({
        tokenExpiry: z
          .enum(['close', 'grace', 'ignore'])
          .default('grace')
          .describe('What becomes of a stream whose token expires: it ends at once, after the grace, or not.'),
        grace: duration.prefault('10m').describe('Has an effect with tokenExpiry: grace.'),
        keepAlive: duration.prefault('15s').describe('A comment after this much silence of the upstream; 0s: none.'),
      })
      .prefault({})
      .describe('Event streams.'),
    limits: z
      .strictObject({
        body: bodySize.prefault('1MiB').describe('Largest body, apart from the next.'),
        runBody: bodySize.prefault('64MiB').describe('Largest body of agent/run, agent/connect, agent/suggest and transcribe.'),
        bodiesInFlight: size.prefault('512MiB').describe('All JSON bodies that are held in memory at once.'),
        bodyMembers: z
          .int('is not a number of members | write 10000')
          .min(100, 'is too few | at least 100')
          .max(MAX_VALUES, `is too many | at most ${MAX_VALUES}`)
          .default(10_000)
          .describe('How many members one object in a body may have; the body itself may have 100.'),
        headers: size.prefault('16KiB').describe('The head of a request.'),
        newThreads: rateOrOff
          .prefault('60/m')
          .describe('Runs and suggestions on threads without an owner, per user; off: no limit.'),
        requests: rateOrOff.prefault('1200/m').describe('Requests of every kind, per user; off: no limit.'),
        grants: rateOrOff.prefault('60/m').describe('Grants that owners give, per user; off: no limit.'),
        runs: rateOrOff.default('off').describe('Runs, per user.'),
        streams: countOrOff
          .default('off')
          .describe('Runs, connects and the like that a user may have open at once; any other answer counts after a second.'),
        sendTimeout: duration
          .prefault('60s')
          .describe('How long an answer waits for a caller who takes nothing of it; then it is cut. 0s: for ever.'),
      })
      .prefault({})
      .describe('How much is taken; a rule of the policy may have its own.'),
    policy: text.optional().describe('The policy file; by default the one that is shipped.'),
    shadowPolicy: text.optional().describe('A second policy, of which only is said where it would decide otherwise.'),
    workers: z
      .union(
        [
          z.literal('auto'),
          z.int().min(1, 'is not a number of processes | write 4 or auto').max(256, 'is too many | at most 256'),
        ],
        'is not a number of processes | write 4 or auto',
      )
      .default(1)
      .describe('How many processes serve requests on the one port; auto: one for each core that there is.'),
    shutdown: z
      .strictObject({
        delay: duration
          .prefault('5s')
          .describe(
            'How long requests are served after SIGTERM, while whoever sends them hears that /readyz fails; 0s: not at all.',
          ),
      })
      .prefault({})
      .describe('The end of the process.'),
    audit: z
      .strictObject({
        to: z.enum(['off', 'stdout', 'file']).default('off').describe('Where the lines go, one for each decision.'),
        file: text.default('./data/audit.jsonl').describe('The file that lines are appended to; has an effect with to: file.'),
        maxSize: rotatedByLogrotate('size 100M'),
        keep: rotatedByLogrotate('rotate 10'),
      })
      .prefault({})
      .describe('The record of decisions.'),
    log: z
      .strictObject({
        level: z
          .enum(['trace', 'debug', 'info', 'warn', 'error', 'silent'])
          .default('info')
          .describe('Least level of log lines; that of a request is info.'),
      })
      .prefault({})
      .describe('JSON lines on stdout.'),
  })
  .superRefine(({ upstream, upstreams, agents, identity }, context) => {
    if (upstream === undefined && Object.keys(upstreams).length + Object.keys(agents).length === 0) {
      context.addIssue({ code: 'custom', path: ['upstream'], message: 'is required | say where the runtime is, or an agent' })
    }
    if (identity.assertion?.replaceAuthorization !== true) return
    const runtimes = [
      [['upstream'], upstream],
      ...Object.entries(upstreams).map(([key, one]) => [['upstreams', key], one]),
    ] as const
    for (const [place, one] of runtimes as readonly (readonly [readonly string[], typeof upstream])[]) {
      if (one?.transport !== 'auto') continue
      const message = "is auto, and the gateway's own questions carry no assertion | name multi-route or single-route"
      context.addIssue({ code: 'custom', path: [...place, 'transport'], message })
    }
  })
  .meta({ title: 'Threadwarden configuration' })

/** `*`, or an origin as browsers write it (RFC 6454 §6.2): no wildcard, path or default port. */
function isOrigin(text: string): boolean {
  return text === '*' || (AUTHORITY_URL.test(text) && URL.canParse(text) && new URL(text).origin === text)
}

/** A configuration that passed the schema: durations in milliseconds, sizes in bytes, base paths `''` or `/a/b`. */
export type Config = z.output<typeof configSchema>

export type IssuerConfig = Config['authentication']['issuers'][string]
