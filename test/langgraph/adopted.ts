/** A LangGraph server that has threads from before the gateway, and configurations for it. */
import { randomUUID } from 'node:crypto'
import { createSigner } from 'fast-jwt'
import type { Test } from 'tap'
import { startLangGraph, type LangGraphOptions } from '../../examples/langgraph.ts'
import { startGateway } from '../../src/gateway/start.ts'
import { makeLog } from '../../src/observe/log.ts'
import { prepare } from '../../src/snapshot/load.ts'
import type { Changes } from '../../testing/support/configuration.ts'
import { configFile } from '../../testing/support/program.ts'

/** The changes of a configuration by which a LangGraph server is its only upstream, at /graphs. */
export function graphsAt(url: string, more: Changes = {}): Changes {
  return { upstream: undefined, 'upstreams.graphs': { kind: 'langgraph', url }, ...more }
}

export interface Adopted {
  readonly url: string
  /** Makes a thread as a client does that knows no gateway. */
  readonly begin: (metadata: object) => Promise<string>
  readonly remove: (threadId: string) => Promise<void>
}

export async function startAdopted(t: Test, options: LangGraphOptions = {}): Promise<Adopted> {
  const server = await startLangGraph(options)
  t.teardown(() => server.close())
  const ask = async (path: string, method: string, body?: object): Promise<unknown> => {
    const answer = await fetch(`${server.url}${path}`, {
      method,
      headers: { 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${await answer.text()}`)
    return answer.status === 204 ? null : answer.json()
  }
  return {
    url: server.url,
    async begin(metadata) {
      const thread_id = randomUUID()
      await ask('/threads', 'POST', { thread_id, metadata })
      return thread_id
    },
    async remove(threadId) {
      await ask(`/threads/${threadId}`, 'DELETE')
    },
  }
}

export interface Started {
  readonly url: string
  /** A token of a user of corp. */
  readonly token: (subject: string) => string
  /** Every log line, parsed. */
  readonly lines: readonly Readonly<Record<string, unknown>>[]
  readonly health: (path: string) => Promise<{ readonly status: number; readonly text: string }>
}

/** A gateway from a configuration file, whose log is heard. */
export async function startBefore(t: Test, changes: Changes): Promise<Started> {
  const { file } = configFile(t, changes)
  const prepared = prepare(file, process.env)
  if (!prepared.ok) throw new Error(JSON.stringify(prepared.faults))
  const lines: Record<string, unknown>[] = []
  const log = makeLog('info', { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) })
  const gateway = await startGateway(prepared.value, log, { prepare: () => prepare(file, process.env) })
  t.teardown(() => gateway.stop(0))
  const sign = createSigner({ key: 'x'.repeat(64), algorithm: 'HS256', expiresIn: 600_000 })
  return {
    lines,
    url: gateway.url,
    token: (subject) => sign({ iss: 'corp', aud: 'chat', sub: subject }),
    async health(path) {
      const answer = await fetch(`${gateway.healthUrl}${path}`)
      return { status: answer.status, text: await answer.text() }
    },
  }
}
