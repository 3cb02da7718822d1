/**
 * `threadwarden/hooks`: the gateway in front of a runtime that is constructed in the same process (docs/hooks.md). A request
 * of a caller goes through the whole gateway before the runtime looks at it; what is permitted comes to a second handler of the
 * same runtime, written anew, and its answer goes back as the gateway gives it. So there is one decision for both, and these
 * hooks decide nothing.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { classify } from '../../core/route/classify.ts'
import { refuse } from '../../core/reasons.ts'
import { QUERY_NAMES } from '../../core/route/routes.ts'
import { findMount, readTarget } from '../../core/route/target.ts'
import { mountsOf } from '../../config/mounts.ts'
import type { Outcome } from '../../document/document.ts'
import { faultLine } from '../../document/fault.ts'
import { startInside } from '../../gateway/start.ts'
import { refusalAnswer } from '../../http/pipeline/answer.ts'
import { makeLog } from '../../observe/log.ts'
import { prepare, type Prepared } from '../../snapshot/load.ts'
import { innerUpstream } from './inner-upstream.ts'
import { askOver } from './pipe.ts'
import type { CreateHandler, HookContext, ResponseContext, RouteContext, RouteInfo, RuntimeHooks } from './runtime.ts'

export type { CreateHandler, HookContext, ResponseContext, RouteContext, RouteInfo, RuntimeHooks }

/** What the hooks are made with. */
export interface HooksOptions<Runtime extends object> {
  /** The configuration file of a gateway. Where its upstream and its public listener are is not looked at. */
  readonly config: string
  /** The runtime to stand in front of. */
  readonly runtime: Runtime
  /** `createCopilotRuntimeHandler` of `@copilotkit/runtime/v2`. */
  readonly createHandler: CreateHandler<Runtime>
  /** Where `${env:NAME}` looks; by default the environment of the process. */
  readonly environment?: NodeJS.ProcessEnv
  /** Starts the health listener of the configuration, with its metrics. By default there is none. */
  readonly health?: boolean
  /** Takes log lines, as JSON; by default stdout. */
  readonly log?: { write(line: string): void }
}

/** Hooks for `createCopilotRuntimeHandler` and every adapter that takes hooks. */
export interface Hooks extends RuntimeHooks {
  /** Where the listeners are that the configuration and the options ask for; null where there is none. */
  readonly healthUrl: string | null
  readonly adminUrl: string | null
  /** Resolves as soon as requests are served; until then they are answered 503. */
  ready(): Promise<void>
  /** Reloads the configuration and activates it, or changes nothing. Opens the audit file again, for log rotation. */
  reload(): Promise<{ readonly outcome: string }>
  /**
   * Takes no more requests, lets what is running end, and closes everything.
   * @param deadline milliseconds after which open streams are ended with a RUN_ERROR event
   */
  close(deadline?: number): Promise<void>
}

/** A configuration that can't be served; each line of the message is a fault with its place. */
export class ConfigurationInvalid extends Error {
  override readonly name = 'ConfigurationInvalid'
}

/** A request that the gateway has written, on its way into the runtime. */
interface Permitted {
  readonly request: Request
  stage: 'sent' | 'admitted' | 'checked' | 'answered'
}

/**
 * Starts a gateway in this process, and gives the hooks that lead to it.
 * @throws ConfigurationInvalid, or what keeps a gateway from starting: nothing is left open then
 */
export async function makeHooks<Runtime extends object>(options: HooksOptions<Runtime>): Promise<Hooks> {
  const { runtime, environment = process.env } = options
  const prepared = readFor(options.config, environment, null)
  if (!prepared.ok) throw new ConfigurationInvalid(prepared.faults.map(faultLine).join('\n'))
  const { config, warnings } = prepared.value
  let [mount] = mountsOf(config)
  const read = (): Outcome<Prepared> => {
    const next = readFor(options.config, environment, mount.basePath)
    if (next.ok) [mount] = mountsOf(next.value.config)
    return next
  }
  const log = makeLog(config.log.level, options.log)
  for (const warning of warnings) log.warn(warning, 'configuration')

  const underWay = new AsyncLocalStorage<Permitted>()
  const answered = new WeakSet<Response>()
  const refused = (reason: 'internal' | 'upstream-transport-pending'): Response => {
    const { status, headers, body } = refusalAnswer(refuse(reason))
    const response = new Response(body, { status, headers })
    answered.add(response)
    return response
  }
  /** The answer to what went round the gateway: nothing may. */
  const refusal = (why: string): Response => {
    log.error({ why }, 'a request came to the runtime past the gateway: are all three hooks installed?')
    return refused('internal')
  }
  let closing = false

  const hooks: RuntimeHooks = {
    onRequest: async ({ request, runtime: asked }) => {
      const permitted = underWay.getStore()
      // The very request, and once: what an agent asks of its own runtime while it runs is a caller's request like any other.
      if (permitted?.request === request && permitted.stage === 'sent') {
        permitted.stage = 'admitted'
        return
      }
      if (asked !== runtime) answerWith(refusal('the handler is of another runtime'))
      // To whoever comes now the runtime is as one that is not known yet: they may try again, elsewhere.
      if (closing) answerWith(refused('upstream-transport-pending'))
      const response = await askOver((connection) => gateway.accept(connection), request)
      answered.add(response)
      answerWith(response)
    },
    onBeforeHandler: async ({ route }) => {
      const permitted = underWay.getStore()
      if (permitted?.stage !== 'admitted') return answerWith(refusal('no hook has seen it'))
      permitted.stage = 'checked'
      if (!isSame(route, permitted.request, mount.basePath)) answerWith(refusal(`the runtime took it for ${route.method}`))
    },
    onResponse: async ({ response }) => {
      if (answered.has(response)) return undefined
      const permitted = underWay.getStore()
      if (permitted?.stage === 'admitted' || permitted?.stage === 'checked') {
        permitted.stage = 'answered'
        return undefined
      }
      await response.body?.cancel()
      return refusal('it was answered by nobody')
    },
  }

  const { basePath } = mount
  const handle = options.createHandler({ runtime, mode: 'multi-route', hooks, ...(basePath === '' ? {} : { basePath }) })
  const upstream = innerUpstream(
    (request) => underWay.run({ request, stage: 'sent' }, () => handle(request)),
    () => mount.timeouts.headers,
  )
  const gateway = await startInside(
    prepared.value,
    log,
    { runtime: upstream, health: options.health === true },
    { prepare: read },
  )
  return {
    ...hooks,
    healthUrl: gateway.healthUrl,
    adminUrl: gateway.adminUrl,
    ready: () => untilReady(gateway.readiness),
    reload: () => {
      gateway.reopenAudit()
      return gateway.reload('program')
    },
    close: (deadline = 0) => {
      closing = true
      return gateway.stop(deadline)
    },
  }
}

/** Answers in the runtime's place: its hooks do so by throwing a `Response` (docs/specification.md). */
function answerWith(response: Response): never {
  throw response as unknown as Error
}

/**
 * Reads a configuration for hooks.
 * @param basePath where the runtime's handler was mounted; null before it was
 */
function readFor(file: string, environment: NodeJS.ProcessEnv, basePath: string | null): Outcome<Prepared> {
  const prepared = prepare(file, environment)
  if (!prepared.ok) return prepared
  const mounts = mountsOf(prepared.value.config)
  const other = mounts.find(({ key }) => key !== '')
  const faults = [
    ...(other === undefined
      ? []
      : [{ file, path: other.place.join('.'), message: 'hooks stand in front of one runtime', hint: 'take threadwarden serve' }]),
    ...(mounts[0].transport === 'single-route'
      ? [{ file, path: 'upstream.transport', message: 'hooks call the runtime by its routes', hint: 'leave it out' }]
      : []),
    ...(basePath === null || mounts[0].basePath === basePath
      ? []
      : [{ file, path: 'upstream.basePath', message: 'changes with a restart alone', hint: 'restart the process' }]),
  ]
  return faults.length > 0 ? { ok: false, faults } : prepared
}

/** True if the runtime read a request as it was written for it. */
function isSame(route: RouteInfo, request: Request, basePath: string): boolean {
  const { pathname, search } = new URL(request.url)
  const target = readTarget(`${pathname}${search}`, QUERY_NAMES)
  const place = target.outcome === 'refused' ? null : findMount([{ publicPath: basePath }], target)
  if (target.outcome === 'refused' || place === null) return false
  const meant = classify(request.method, place.segments, target.query)
  if (meant.outcome === 'refused') return false
  const { agentId, threadId, memoryId } = meant.ids
  return (
    route.method === meant.route.id && route.agentId === agentId && route.threadId === threadId && route.memoryId === memoryId
  )
}

const LOOK_AGAIN_MS = 20

async function untilReady(readiness: { pending(): ReadonlyMap<string, string> }): Promise<void> {
  while (readiness.pending().size > 0) await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS))
}
