/** The parts used here of libraries that ship no types. */

declare module 'express' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  export type Router = (request: never, response: never, next: (error?: unknown) => void) => void
  interface Application {
    (request: IncomingMessage, response: ServerResponse): void
    use(handler: Router): void
    use(path: string, handler: Router): void
    get(path: string, handler: (request: IncomingMessage, response: Response) => void): void
  }
  interface Response extends ServerResponse {
    json(value: unknown): void
    sendFile(name: string, options: { root: string }): void
  }
  const express: {
    (): Application
    static(folder: string, options: { index: string }): Router
    json(options: { limit: string }): Router
  }
  export default express
}

declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  /** What a page has to settle with the user before the provider goes on. */
  export interface Interaction {
    uid: string
    prompt: {
      name: string
      details: { missingOIDCScope?: string[]; missingResourceScopes?: Record<string, string[]> }
    }
    params: { client_id: string }
    session?: { accountId: string }
    grantId?: string
  }

  export interface Grant {
    addOIDCScope(scope: string): void
    addResourceScope(resource: string, scope: string): void
    save(): Promise<string>
  }

  export default class Provider {
    constructor(issuer: string, configuration: object)
    readonly Grant: {
      new (properties: { accountId: string; clientId: string }): Grant
      find(id: string): Promise<Grant | undefined>
    }
    callback(): (request: IncomingMessage, response: ServerResponse) => void
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>
    interactionFinished(
      request: IncomingMessage,
      response: ServerResponse,
      result: object,
      options: { mergeWithLastSubmission: boolean },
    ): Promise<void>
  }
}
