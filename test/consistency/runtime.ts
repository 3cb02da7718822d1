/**
 * A stand-in for the runtime: threads in memory in the runtime's own shape (runtime-behaviour.md, "Routes"), the same routes. The real
 * in-memory runtime answers 422 to update, archive and DELETE and ignores paging, so it cannot play this part. It watches
 * who comes: whatever reaches it about a thread from somebody whom the model does not allow is noted.
 */
import { json, events, INFO, type Answering, type Recorded } from '../../testing/support/upstream.ts'
import type { Model, ThreadRoute } from './model.ts'

interface Thread {
  name: string | null
  archived: boolean
  updatedAt: number
  readonly messages: { readonly id: string; readonly role: string; readonly content: string }[]
}

/** The stand-in. */
export class MemoryRuntime {
  /** What must not have arrived. */
  readonly trespasses: string[] = []
  /** How many threads stand on a page. */
  pageSize = 2
  /** What a run is answered. */
  runStatus = 200
  /** `lingers`: confirmed, and listed all the same, as an index that lags behind lists it. */
  deletion: 'confirmed' | 'lingers' | 'refused' = 'confirmed'
  #model: Model
  #threads = new Map<string, Thread>()
  #clock = 0

  constructor(model: Model) {
    this.#model = model
  }

  /** Forgets everything; some threads are older than the gateway. */
  reset(model: Model, pageSize: number, old: readonly string[]): void {
    this.#model = model
    this.pageSize = pageSize
    this.#threads = new Map()
    for (const id of old) this.#store(id, 'from before')
  }

  /** What it lists: the latest first. */
  listed(): readonly string[] {
    return this.#sorted().map(([id]) => id)
  }

  readonly answer: Answering = (request, response) => {
    const { pathname, searchParams } = new URL(request.target, 'http://runtime')
    const path = pathname.slice('/api/copilotkit/'.length).split('/').map(decodeURIComponent)
    const body = (request.json ?? {}) as { threadId?: string; name?: string; archived?: boolean }
    const answer = this.#route(request.method, path, body, searchParams.get('cursor'), subjectOf(request))
    return answer(request, response)
  }

  #route(
    method: string,
    path: readonly string[],
    body: { threadId?: string; name?: string; archived?: boolean },
    cursor: string | null,
    user: string,
  ): Answering {
    const [first = '', second = '', third = '', fourth = ''] = path
    switch (`${method} ${first}${path.length > 2 ? `/${third}` : ''}`) {
      case 'GET info':
        return json(INFO)
      case 'POST agent/run':
        this.#watch(user, 'run', body.threadId!)
        if (this.runStatus !== 200) return json({ error: 'so it is' }, this.runStatus)
        this.#store(body.threadId!, `by ${user}`)
        return events({ type: 'RUN_STARTED' }, { type: 'RUN_FINISHED' })
      case 'POST agent/connect':
      case 'POST agent/suggest':
        this.#watch(user, third as ThreadRoute, body.threadId!)
        return events({ type: 'RUN_STARTED' })
      case 'POST agent/stop':
        this.#watch(user, 'stop', fourth)
        return json({ stopped: false })
      case 'POST annotate':
        this.#watch(user, 'annotate', body.threadId!)
        return json({ id: 'annotation', duplicate: false })
      case 'GET threads':
        return json(this.#page(Number(cursor ?? 0)))
      case 'POST threads':
        if (!this.#model.mayClear(user)) this.trespasses.push(`clear by ${user}`)
        this.#threads.clear()
        return (_request, response) => void response.writeHead(204).end()
      case 'GET threads/messages':
        this.#watch(user, 'messages', second)
        return json({ messages: this.#threads.get(second)?.messages ?? [] })
      case 'GET threads/events':
        this.#watch(user, 'events', second)
        return json({ events: [] })
      case 'GET threads/state':
        this.#watch(user, 'state', second)
        return json({ state: null })
      case 'PATCH threads':
      case 'POST threads/archive': {
        this.#watch(user, method === 'PATCH' ? 'update' : 'archive', second)
        const thread = this.#threads.get(second)
        if (thread === undefined) return json({ error: 'no such thread' }, 404)
        if (method === 'PATCH') thread.name = body.name ?? thread.name
        else thread.archived = true
        return json(item(second, thread))
      }
      case 'DELETE threads':
        this.#watch(user, 'delete', second)
        if (this.deletion === 'refused') return json({ error: 'not here' }, 422)
        if (this.deletion === 'confirmed') this.#threads.delete(second)
        return json({ threadId: second, deleted: true })
      default:
        this.trespasses.push(`${method} ${path.join('/')} by ${user}`)
        return json({ error: 'no such route' }, 404)
    }
  }

  #watch(user: string, route: ThreadRoute, threadId: string): void {
    if (!this.#model.mayArrive(user, route, threadId)) {
      this.trespasses.push(`${route} of ${threadId} by ${user}, owned by ${this.#model.tell(threadId)}`)
    }
  }

  #store(id: string, content: string): void {
    const thread = this.#threads.get(id) ?? { name: null, archived: false, updatedAt: 0, messages: [] }
    thread.updatedAt = this.#clock += 1
    thread.messages.push({ id: `m${this.#clock}`, role: 'user', content })
    this.#threads.set(id, thread)
  }

  #sorted(): (readonly [string, Thread])[] {
    return [...this.#threads].sort(([, one], [, other]) => other.updatedAt - one.updatedAt)
  }

  #page(start: number): object {
    const end = start + this.pageSize
    const threads = this.#sorted()
    return {
      threads: threads.slice(start, end).map(([id, thread]) => item(id, thread)),
      nextCursor: end < threads.length ? String(end) : null,
    }
  }
}

function item(id: string, { name, archived, updatedAt }: Thread): object {
  const at = new Date(updatedAt).toISOString()
  return { id, name, agentId: 'default', organizationId: '', createdById: '', archived, createdAt: at, updatedAt: at }
}

/** Whose token it is; the gateway has verified it. */
function subjectOf({ headers }: Recorded): string {
  const [, payload] = (headers.get('authorization')?.[0] ?? '').split('.')
  if (payload === undefined) return 'anonymous'
  return (JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) as { sub: string }).sub
}
