/** The requests of the page: the admin API, by the cookie of the session. */

export interface Rule {
  readonly name: string
  readonly file: string
  readonly line: number | null
}

export interface Decision {
  readonly time: string
  readonly requestId: string
  readonly client: string | null
  readonly principal: { readonly id: string } | null
  readonly route: string
  readonly agent: string | null
  readonly thread: string | null
  readonly interrupts: readonly { readonly id: string | null; readonly answer: string }[] | null
  readonly scope: string
  readonly decision: 'permitted' | 'refused'
  readonly reason: string
  readonly rule: Rule | null
}

export interface Minute {
  readonly minute: string
  readonly permitted: number
  readonly refused: Readonly<Record<string, number>>
}

export interface Stream {
  readonly requestId: string
  readonly openedAt: string
  readonly user: string
  readonly route: string
  readonly agent: string | null
  readonly thread: string | null
  readonly expiresAt: string | null
}

export interface BudgetUsed {
  readonly rule: string | null
  readonly per: string
  readonly limit: number
  readonly windowSeconds: number
  readonly spent: number
  readonly reserved: number
  readonly openRuns: number
  readonly resetsAt: string | null
}

export interface Status {
  readonly version: string
  readonly startedAt: string
  readonly workers: number
  readonly ready: boolean
  readonly pending: Readonly<Record<string, string>>
  readonly notes: Readonly<Record<string, string>>
  readonly configuration: {
    readonly digest: string
    readonly generation: number
    readonly enforcement: string
    readonly policy: { readonly file: string; readonly hash: string }
  }
  readonly lastReload: {
    readonly at: string
    readonly cause: string
    readonly outcome: string
    readonly faults: readonly string[]
  } | null
  readonly issuers: readonly {
    readonly key: string
    readonly issuer: string
    readonly state: string
    readonly fetchedAt: string | null
    readonly keys: readonly string[]
  }[]
  readonly upstreams: readonly { readonly key: string; readonly publicPath: string; readonly transport: string | null }[]
  readonly certificates: readonly { readonly name: string; readonly expiresAt: string }[]
}

export interface Access {
  readonly effect: 'allow' | 'deny'
  readonly who: readonly string[]
  readonly threads: readonly string[] | null
  readonly agents: readonly string[] | null
  readonly conditions: readonly string[]
  readonly rule: Rule
}

export interface Policy {
  readonly file: string
  readonly hash: string
  readonly routes: readonly {
    readonly upstream: string
    readonly route: string
    readonly method: string
    readonly path: string
    readonly hasThread: boolean
    readonly closed: boolean
    readonly access: readonly Access[]
  }[]
}

export interface Explanation {
  readonly then: { readonly outcome: string; readonly reason: string; readonly rule: string | null } | null
  readonly same: boolean | null
  readonly now: {
    readonly outcome: string
    readonly status: number | null
    readonly code: string | null
    readonly reason: string
    readonly rule: Rule | null
  } | null
  readonly request: Readonly<Record<string, unknown>> | null
  readonly route: Readonly<Record<string, unknown>> | null
  readonly principal: Readonly<Record<string, unknown>> | null
  readonly facts: Readonly<Record<string, unknown>> | null
  readonly policy: { readonly file: string; readonly hash: string }
  readonly rules: readonly (Rule & { readonly effect: string; readonly verdict: string; readonly decides: boolean })[]
  readonly upstream: Readonly<Record<string, unknown>> | null
  readonly notes: readonly string[]
}

export interface ThreadRow {
  readonly thread: string
  readonly scope: string
  readonly state: string
  readonly owner: string | null
  readonly agent: string | null
  readonly name: string | null
  readonly createdAt: string | null
  readonly lastUsedAt: string | null
  readonly deletedAt: string | null
}

export interface Grant {
  readonly user?: string
  readonly group?: string
  readonly right: string
  readonly grantedBy: string
  readonly grantedAt: string
}

export interface Thread extends ThreadRow {
  readonly grants: readonly Grant[]
  readonly runners: readonly string[]
}

export interface Session {
  readonly operator: { readonly name: string; readonly role: 'operator' | 'viewer' } | null
  readonly openId: boolean
}

/** An answer that is no success, with the text of the gateway. */
export class Refused extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** @throws Refused; TypeError if the gateway cannot be reached */
export async function ask<Answer = null>(
  path: string,
  method: 'GET' | 'POST' | 'DELETE' = 'GET',
  body?: object,
): Promise<Answer> {
  const response = await fetch(path, {
    method,
    ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  })
  const text = await response.text()
  const answer = text === '' ? null : (JSON.parse(text) as { readonly message?: string } | null)
  if (!response.ok) throw new Refused(response.status, answer?.message ?? `The gateway answered ${response.status}.`)
  return answer as Answer
}

export function query(values: Readonly<Record<string, string>>): string {
  const given = Object.entries(values).filter(([, value]) => value !== '')
  return given.length === 0 ? '' : `?${given.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')}`
}

export function threadPath({ thread, scope }: Pick<ThreadRow, 'thread' | 'scope'>, rest = ''): string {
  return `/threads/${encodeURIComponent(thread)}${rest}${query({ scope })}`
}
