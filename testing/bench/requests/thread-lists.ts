/** Lists of threads, as the runtime writes them. */
import { MANY, type Owned } from './people.ts'

/** When every thread was made. */
export const CREATED = '2026-01-01T00:00:00.000Z'

/**
 * The body of a list.
 * @param nameOf the name of a thread, by its place in the list
 */
export function listBody(threads: readonly Owned[], agentId: string, nameOf: (at: number) => string | null): string {
  const items = threads.map(({ threadId }, at) => ({
    id: threadId,
    name: nameOf(at),
    agentId,
    organizationId: '',
    createdById: '',
    archived: false,
    createdAt: CREATED,
    updatedAt: CREATED,
  }))
  return JSON.stringify({ threads: items, nextCursor: null })
}

/** As people's first questions are summed up: 25 to 40 characters, not all of them ASCII. */
const NAMES = [
  'Summary of the quarterly sales report',
  'Why does the import fail at line',
  'Plan for the offsite in Zürich, draft',
  'Refund for an order that never came',
  'Translate the release notes, version',
]

/** The agent whose list is {@link MANY_BODY}. */
export const MANY_AGENT = 'many'

/** 10,000 threads, all of them with a name. */
export const MANY_BODY = Buffer.from(listBody(MANY, MANY_AGENT, (at) => `${NAMES[at % NAMES.length]} ${at}`))

/** Where it is asked for. */
export const MANY_PATH = `/threads?agentId=${MANY_AGENT}`
