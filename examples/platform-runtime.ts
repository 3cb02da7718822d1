/**
 * What a runtime of the managed platform needs besides its agents: the platform, and who is asking. That is told by the
 * gateway's signed assertion and by nothing else that a request holds.
 */
import './no-telemetry.ts'
import { CopilotKitIntelligence, type CopilotIntelligenceRuntimeOptions, type CopilotRuntimeHooks } from '@copilotkit/runtime/v2'
import {
  expectThread,
  makeAssertionVerifier,
  NotAuthenticated,
  type AgentUser,
  type AssertionVerifierOptions,
} from '../src/sdk/agent/index.ts'

export interface PlatformOptions {
  readonly apiUrl: string
  /** The sockets have a host of their own, so both must be set together. */
  readonly wsUrl: string
  readonly apiKey: string
  /** Whose assertions count. */
  readonly assertion: AssertionVerifierOptions
}

/** The runtime's options and the handler's hooks. */
export interface PlatformParts {
  readonly options: Pick<CopilotIntelligenceRuntimeOptions, 'intelligence' | 'generateThreadNames'> & {
    readonly identifyUser: (request: Request) => Promise<{ readonly id: string; readonly name: string }>
  }
  readonly hooks: CopilotRuntimeHooks
}

/** Makes them. */
export function platformParts({ assertion, ...platform }: PlatformOptions): PlatformParts {
  const verify = makeAssertionVerifier(assertion)
  return {
    options: {
      intelligence: new CopilotKitIntelligence(platform),
      identifyUser: async ({ headers }) => {
        const user = await verify(headers)
        return { id: platformId(user.user_id), name: nameOf(user) }
      },
      // Each new thread would cost its agent a second run, which invents a title.
      generateThreadNames: false,
    },
    hooks: {
      // The runtime asks identifyUser on most routes only, and turns what it throws into a 500. The gateway's question what
      // the runtime is, is of no user.
      onBeforeHandler: async ({ request, route }) => {
        if (route.method === 'info') return
        try {
          const user = await verify(request.headers)
          if ('threadId' in route) expectThread(user, route.threadId)
        } catch (error) {
          // oxlint-disable-next-line typescript/only-throw-error -- a response is how a hook answers
          throw Response.json({ error: 'Not authenticated' }, { status: error instanceof NotAuthenticated ? 401 : 503 })
        }
      },
    },
  }
}

/**
 * A user id in the characters that the runtime takes, with `=` and the bytes in place of others: `corp:auth0|1` would be a 400.
 * What is written so is never two people's, and stays as it is.
 */
function platformId(id: string): string {
  return id.replaceAll(/[^\w.@:-]/gu, (one) => Buffer.from(one).toString('hex').replaceAll(/../g, '=$&'))
}

/** The runtime refuses users without a name. */
function nameOf({ name = '', user_id }: AgentUser): string {
  return name.trim() === '' ? user_id : name
}
