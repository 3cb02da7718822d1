/** The parts of the runtime's interface that are used here (`@copilotkit/runtime/v2`; runtime-behaviour.md, "Routes"). */

export interface RouteInfo {
  readonly method: string
  readonly agentId?: string
  readonly threadId?: string
  readonly memoryId?: string
}

export interface HookContext {
  readonly request: Request
  readonly runtime: object
}

export interface RouteContext extends HookContext {
  readonly route: RouteInfo
}

/** The route means nothing if the answer came before a route was found. */
export interface ResponseContext extends RouteContext {
  readonly response: Response
}

/** A hook answers by throwing a `Response`. */
export interface RuntimeHooks {
  readonly onRequest: (context: HookContext) => Promise<void>
  readonly onBeforeHandler: (context: RouteContext) => Promise<void>
  readonly onResponse: (context: ResponseContext) => Promise<Response | undefined>
}

export type CreateHandler<Runtime extends object> = (options: {
  runtime: Runtime
  basePath?: string
  mode?: 'multi-route'
  hooks: RuntimeHooks
}) => (request: Request) => Promise<Response>
