/** `threadwarden/hooks` (docs/how-to/connect/in-process.md): a request passes a whole gateway in this process first; these hooks decide nothing. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { classify } from '../../core/route/classify.ts'
import { refuse } from '../../core/reasons.ts'
import { QUERY_NAMES } from '../../core/route/all-routes.ts'
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

export interface HooksOptions<Runtime extends object> {
  /** A gateway's configuration file. Its upstream address and public listener are ignored. */
  readonly config: string
  readonly runtime: Runtime
  /** `createCopilotRuntimeHandler` of `@copilotkit/runtime/v2`. */
  readonly createHandler: CreateHandler<Runtime>
  /** For `${env:NAME}`; by default the environment of the process. */
  readonly environment?: NodeJS.ProcessEnv
  /** Starts the configured health listener, with its metrics; by default there is none. */
  readonly health?: boolean
  /** Gets JSON log lines; by default stdout. */
  readonly log?: { write(line: string): void }
}

export interface Hooks extends RuntimeHooks {
  /** The addresses of the listeners; null without one. */
  readonly healthUrl: string | null
  readonly adminUrl: string | null
  /** Resolves when requests are served; until then the answer is 503. */
  ready(): Promise<void>
  /** Activates the changed configuration, or changes nothing. Reopens the audit file, for log rotation. */
  reload(): Promise<{ readonly outcome: string }>
  /** Accepts no more requests and closes when all end. After `deadline` milliseconds, open streams end with a RUN_ERROR event. */
  close(deadline?: number): Promise<void>
}

/** Each line of the message is an error with its place. */
export class ConfigurationInvalid extends Error {
  override readonly name = 'ConfigurationInvalid'
}

interface Permitted {
  readonly request: Request
  stage: 'sent' | 'admitted' | 'checked' | 'answered'
}

/** Starts a gateway in this process. @throws ConfigurationInvalid, or a start failure, with nothing left open */
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
  const refusal = (why: string): Response => {
    log.error({ why }, 'a request reached the runtime without passing the gateway: check that all three hooks are installed')
    return refused('internal')
  }
  let closing = false

  const hooks: RuntimeHooks = {
    onRequest: async ({ request, runtime: asked }) => {
      const permitted = underWay.getStore()
      // Exactly this request, once: a request of an agent to its own runtime during a run is a caller's request.
      if (permitted?.request === request && permitted.stage === 'sent') {
        permitted.stage = 'admitted'
        return
      }
      if (asked !== runtime) answerWith(refusal('the handler is of another runtime'))
      // As for a transport that is not known yet: the caller may retry elsewhere.
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
      return refusal('no handler answered it')
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

/** Answers instead of the runtime: a hook does that by throwing a `Response` (docs/contributing/specification-map.md). */
function answerWith(response: Response): never {
  throw response as unknown as Error
}

/** `basePath` is where the runtime's handler is mounted; null before the mount. */
function readFor(file: string, environment: NodeJS.ProcessEnv, basePath: string | null): Outcome<Prepared> {
  const prepared = prepare(file, environment)
  if (!prepared.ok) return prepared
  const mounts = mountsOf(prepared.value.config)
  const other = mounts.find(({ key }) => key !== '')
  const faults = [
    ...(other === undefined
      ? []
      : [
          other.api === 'langgraph'
            ? {
                file,
                path: other.place.join('.'),
                message: 'is a LangGraph server: hooks serve one runtime in their own process',
                hint: 'use threadwarden serve in front of the server',
              }
            : { file, path: other.place.join('.'), message: 'hooks serve one runtime', hint: 'use threadwarden serve' },
        ]),
    ...(mounts[0].transport === 'single-route'
      ? [{ file, path: 'upstream.transport', message: 'hooks call the runtime by its routes', hint: 'leave it out' }]
      : []),
    ...(basePath === null || mounts[0].basePath === basePath
      ? []
      : [{ file, path: 'upstream.basePath', message: 'changes with a restart alone', hint: 'restart the process' }]),
  ]
  if (faults.length > 0) return { ok: false, faults }
  // The URL is ignored: the runtime is in this process.
  const warnings = prepared.value.warnings.filter(({ path }) => path !== 'upstream.url')
  return { ok: true, value: { ...prepared.value, warnings } }
}

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
