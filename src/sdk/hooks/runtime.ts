/** The parts used here of the runtime's interface: hooks and handler, as `@copilotkit/runtime/v2` has them (runtime-behaviour.md, "Routes"). */

/** What the runtime says of a route that it found. */
export interface RouteInfo {
  readonly method: string
  readonly agentId?: string
  readonly threadId?: string
  readonly memoryId?: string
}

/** What a hook is told. */
export interface HookContext {
  readonly request: Request
  readonly runtime: object
}

/** What a hook is told once a route was found. */
export interface RouteContext extends HookContext {
  readonly route: RouteInfo
}

/** What a hook is told of an answer; the route of one that came before any was found means nothing. */
export interface ResponseContext extends RouteContext {
  readonly response: Response
}

/** The hooks of a runtime handler. What is thrown as a `Response` is the answer. */
export interface RuntimeHooks {
  readonly onRequest: (context: HookContext) => Promise<void>
  readonly onBeforeHandler: (context: RouteContext) => Promise<void>
  readonly onResponse: (context: ResponseContext) => Promise<Response | undefined>
}

/** `createCopilotRuntimeHandler`. */
export type CreateHandler<Runtime extends object> = (options: {
  runtime: Runtime
  basePath?: string
  mode?: 'multi-route'
  hooks: RuntimeHooks
}) => (request: Request) => Promise<Response>
