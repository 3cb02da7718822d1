/** The configuration schema: source of the types, the checks and the editor schema. Names are stable (docs/reference/configuration.md). */
import { z } from 'zod'
import { consoleSchema } from './console-schema.ts'
import { identitySchema } from './identity-schema.ts'
import { issuerSchema } from './issuer-schema.ts'
import { storeFault, storeKeys } from './ownership-schema.ts'
import { MAX_VALUES } from '../core/json/read.ts'
import { isLoopbackHost } from '../core/wire/addresses.ts'
import { ratesOrOff, streamsOrOff, tokenBudgets, unknownGroup } from '../document/limits.ts'
import { ageOrOff, bodySize, duration, size, text } from '../document/quantities.ts'
import { policyReference } from './policy-file.ts'
import { listenTlsSchema } from './tls-schema.ts'
import { agentsSchema, AUTHORITY_URL, upstreamSchema, upstreamsSchema } from './upstream-schema.ts'

const port = z
  .union([z.int(), z.string().regex(/^\d+$/).transform(Number)], 'is not a port number | 0 to 65535')
  .refine((value) => value >= 0 && value <= 65_535, 'is not a port number | 0 to 65535')

export const healthSchema = z
  .strictObject({
    host: text.default('0.0.0.0').describe('The address or name of the listener.'),
    port: port.prefault(8081).describe('Its port; 0 takes a free port.'),
  })
  .prefault({})
  .describe('The health listener: /livez, /readyz, /startupz and /metrics.')

/** A removed rotation setting: without an error, a file that was bounded would grow without limit. */
function rotatedByLogrotate(line: string) {
  const hint = `take it out, and write to /etc/logrotate.d/threadwarden: PATH { ${line} … postrotate kill -HUP PID endscript } (docs/how-to/operate/audit.md#rotate-the-file)`
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
        host: text.default('0.0.0.0').describe('The address or name of the listener.'),
        port: port.prefault(8080).describe('Its port; 0 takes a free port.'),
        fd: z
          .int('is not a file descriptor | write 3')
          .min(3, 'is not a socket of systemd | 3 is the first')
          .optional()
          .describe('A socket that a systemd .socket unit passes, in place of host and port; 3 is the first.'),
        connections: z
          .int('is not a number of connections | write 8192')
          .min(16, 'is too few | at least 16')
          .max(1_000_000, 'is too many | at most 1000000')
          .optional()
          .describe(
            'The most open connections of all workers: 8192 by default, 3072 with tls. For a new one, the gateway closes the one that has been idle longest.',
          ),
        trustedProxies: z
          .array(z.union([z.cidrv4(), z.cidrv6()], 'is not a CIDR | write 10.0.0.0/8'))
          .refine(
            (list) => !list.some((cidr) => cidr.endsWith('/0')),
            'would trust every address | name the networks of the proxies',
          )
          .default([])
          .describe('Networks of proxies whose X-Forwarded-For the gateway trusts for the client address.'),
        publicOrigins: z
          .array(z.string().refine(isOwnOrigin, 'is not an own origin | write https://chat.example.com; http only for loopback'))
          .default([])
          .describe('The origins at which browsers reach the gateway, for cookie sessions. No header of a request changes them.'),
        tls: listenTlsSchema.optional(),
      })
      .prefault({})
      .describe('The public listener.'),
    health: healthSchema,
    admin: z
      .strictObject({
        host: text.default('127.0.0.1').describe('Its address or name. It speaks plain HTTP: keep it on loopback.'),
        port: port.prefault(9090).describe('Its port; 0 takes a free port.'),
        credential: z
          .string()
          .min(32, 'is too short | 32 characters at least, made at random')
          .optional()
          .describe('The bearer token of the admin API; write "${file:…}".'),
        credentialFile: text
          .optional()
          .describe('A file with one or two bearer tokens, one per line; the gateway reads it on each request.'),
        console: consoleSchema.optional(),
      })
      .refine(
        (admin) => (admin.credential === undefined) !== (admin.credentialFile === undefined),
        'needs credential or credentialFile | one of them: its holder may revoke',
      )
      .optional()
      .describe('The admin API; off unless this key is present.'),
    enforcement: z
      .enum(['enforce', 'observe'])
      .default('enforce')
      .describe(
        'observe (report-only) allows requests that enforce would refuse only because of ownership, and reports them. Threads are not protected.',
      ),
    upstream: upstreamSchema.optional(),
    upstreams: upstreamsSchema,
    agents: agentsSchema,
    forwardHeaders: z.array(z.string()).default([]).describe('Caller headers to forward, besides the built-in ones.'),
    cors: z
      .strictObject({
        origins: z
          .array(z.string().refine(isOrigin, 'is not an origin | write https://app.example.com, or only "*"'))
          .refine((list) => !list.includes('*') || list.length === 1, '"*" must be the only origin')
          .default([])
          .describe('Origins that may call, exactly as browsers send them, or "*" alone.'),
        credentials: z.boolean().default(false).describe('Lets browsers send cookies. Bearer tokens do not need it.'),
      })
      .refine((cors) => !(cors.credentials && cors.origins.includes('*')), 'credentials cannot go with "*" | name the origins')
      .prefault({})
      .describe('Which web pages may call the gateway.'),
    authentication: z
      .strictObject({
        mode: z
          .enum(['required', 'optional', 'off'])
          .default('required')
          .describe('optional: callers without a credential are anonymous. off: no authentication, all callers are one user.'),
        clockTolerance: duration.prefault('30s').describe('The allowed clock difference for the times in a token.'),
        tokenCache: z.int().min(0).default(10_000).describe('How many verified tokens the gateway caches; 0 for none.'),
        issuers: z
          .record(z.string().regex(/^[a-z0-9-]+$/, 'an issuer key is of a-z, 0-9 and -'), issuerSchema)
          .default({})
          .describe('The identity providers, by an issuer id of your choice. It is part of every user id: do not rename it.'),
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
      .describe('How callers are authenticated.'),
    identity: identitySchema,
    ownership: z
      .strictObject({
        ...storeKeys,
        unknownThread: z
          .enum(['claim', 'verify', 'deny'])
          .describe('What a run or suggestion on an unowned thread does. See docs/how-to/authorize/unknown-threads.md.'),
        lists: z
          .enum(['upstream', 'table', 'auto'])
          .default('upstream')
          .describe(
            'The source of thread lists: the upstream, the ownership table, or (auto) the table if the upstream has no list.',
          ),
        retention: z
          .strictObject({
            deleted: ageOrOff
              .prefault('off')
              .describe('When to forget a deleted thread, after the upstream confirmed that it has nothing of it; off: never.'),
          })
          .prefault({})
          .describe('Which rows the gateway deletes by itself.'),
      })
      .superRefine((value, context) => {
        const fault = storeFault(value)
        if (fault !== null) context.addIssue({ code: 'custom', ...fault })
      })
      .describe('Where the owners of threads are stored, and what happens to threads without an owner.'),
    streams: z
      .strictObject({
        tokenExpiry: z
          .enum(['close', 'grace', 'ignore'])
          .default('grace')
          .describe('What happens to a stream when its token expires: it ends at once, after streams.grace, or not.'),
        grace: duration.prefault('10m').describe('How long a stream may continue with tokenExpiry: grace.'),
        keepAlive: duration
          .prefault('15s')
          .describe('After this silence of the upstream, the gateway adds a comment to an event stream; 0s for none.'),
      })
      .prefault({})
      .describe('Event streams.'),
    limits: z
      .strictObject({
        body: bodySize.prefault('1MiB').describe('The largest request body, except those of limits.runBody.'),
        runBody: bodySize
          .prefault('64MiB')
          .describe('The largest body of agent/run, agent/connect, agent/suggest and transcribe.'),
        bodiesInFlight: size.prefault('512MiB').describe('The total size of all JSON bodies in memory.'),
        bodyMembers: z
          .int('is not a number of members | write 10000')
          .min(100, 'is too few | at least 100')
          .max(MAX_VALUES, `is too many | at most ${MAX_VALUES}`)
          .default(10_000)
          .describe('The members of one object in a JSON body; the body itself may have 100.'),
        headers: size.prefault('16KiB').describe('The largest head of a request.'),
        newThreads: ratesOrOff.prefault('60/m').describe('Runs and suggestions on unowned threads, per user; off for no limit.'),
        requests: ratesOrOff.prefault('1200/m').describe('All requests, per user; off for no limit.'),
        grants: ratesOrOff.prefault('60/m').describe('Grants by owners, per user; off for no limit.'),
        runs: ratesOrOff.prefault('off').describe('Runs, per user; off for no limit.'),
        streams: streamsOrOff
          .default('off')
          .describe('Open runs, connects and other streams, per user; any other response counts after one second.'),
        tokens: tokenBudgets.default([]).describe('Budgets of tokens of runs and suggestions; none by default.'),
        sendTimeout: duration
          .prefault('60s')
          .describe('How long a response waits for a client that reads nothing, before the gateway cuts it; 0s for no limit.'),
      })
      .prefault({})
      .describe('Limits per user and per request. A policy rule can set its own.'),
    policy: policyReference
      .optional()
      .describe('The policy: a file, or builtin:NAME for one that is part of the program (builtin:default by default).'),
    shadowPolicy: policyReference
      .optional()
      .describe('A second policy: the gateway reports where it would decide differently, and refuses nothing because of it.'),
    workers: z
      .union(
        [
          z.literal('auto'),
          z.int().min(1, 'is not a number of processes | write 4 or auto').max(256, 'is too many | at most 256'),
        ],
        'is not a number of processes | write 4 or auto',
      )
      .default(1)
      .describe('The number of worker processes; auto starts one for each available core.'),
    shutdown: z
      .strictObject({
        delay: duration
          .prefault('5s')
          .describe('How long the gateway still serves requests after SIGTERM while /readyz already fails; 0s for none.'),
      })
      .prefault({})
      .describe('The shutdown of the process.'),
    audit: z
      .strictObject({
        to: z
          .enum(['off', 'stdout', 'file'])
          .default('off')
          .describe('Where the gateway writes the audit: one line for each decision.'),
        file: text
          .default('./data/audit.jsonl')
          .describe(
            'The file to which the gateway appends, with to: file. The environment variable THREADWARDEN_DATA moves the default file to another folder.',
          ),
        interruptContent: z
          .boolean()
          .default(false)
          .describe('Whether lines have the content of answers to interrupts: up to 4096 characters of what users wrote.'),
        maxSize: rotatedByLogrotate('size 100M'),
        keep: rotatedByLogrotate('rotate 10'),
      })
      .prefault({})
      .describe('The audit of decisions.'),
    log: z
      .strictObject({
        level: z
          .enum(['trace', 'debug', 'info', 'warn', 'error', 'silent'])
          .default('info')
          .describe('The lowest level to log. Request lines are info.'),
      })
      .prefault({})
      .describe('The log: JSON lines on stdout.'),
  })
  .superRefine(({ limits, authentication }, context) => {
    const { requests, runs, newThreads, grants, streams, tokens } = limits
    for (const [key, limit] of Object.entries({ requests, runs, newThreads, grants, streams, tokens })) {
      const group = unknownGroup(limit, Object.keys(authentication.issuers))
      if (group !== null)
        context.addIssue({
          code: 'custom',
          path: ['limits', key],
          message: `${group} is a group of no configured issuer | write issuer:group with an id under authentication.issuers`,
        })
    }
  })
  .superRefine(({ upstream, upstreams, agents, identity, listen, workers }, context) => {
    if (upstream === undefined && Object.keys(upstreams).length + Object.keys(agents).length === 0) {
      context.addIssue({ code: 'custom', path: ['upstream'], message: 'is required | say where the runtime is, or an agent' })
    }
    if (listen.fd !== undefined && workers !== 1) {
      // The cluster module closes the socket with its last worker, and systemd passes it only at start.
      const message = 'cannot go with several workers | write workers: 1, or listen.host and listen.port'
      context.addIssue({ code: 'custom', path: ['listen', 'fd'], message })
    }
    if (identity.assertion?.replaceAuthorization !== true) return
    const runtimes = [
      [['upstream'], upstream],
      ...Object.entries(upstreams).map(([key, one]) => [['upstreams', key], one]),
    ] as const
    type Asked = { readonly transport: string; readonly kind?: string | undefined } | undefined
    for (const [place, one] of runtimes as readonly (readonly [readonly string[], Asked])[]) {
      // The gateway asks a LangGraph server nothing to learn what it is.
      if (one?.transport !== 'auto' || one.kind === 'langgraph') continue
      const message = "is auto, and the gateway's own questions carry no assertion | name multi-route or single-route"
      context.addIssue({ code: 'custom', path: [...place, 'transport'], message })
    }
  })
  .meta({ title: 'Threadwarden configuration' })

/** `*`, or an origin as browsers write it (RFC 6454 §6.2): no wildcard, path or default port. */
function isOrigin(text: string): boolean {
  return text === '*' || (AUTHORITY_URL.test(text) && URL.canParse(text) && new URL(text).origin === text)
}

/** Browsers send Sec-Fetch-Site, which cookie sessions need, only to https and to loopback addresses (Secure Contexts §3.1). */
function isOwnOrigin(text: string): boolean {
  return text !== '*' && isOrigin(text) && (text.startsWith('https:') || isLoopbackHost(new URL(text).hostname))
}

/** A configuration that passed the schema: durations in milliseconds, sizes in bytes, base paths `''` or `/a/b`. */
export type Config = z.output<typeof configSchema>

export type IssuerConfig = Config['authentication']['issuers'][string]
