/** Checks of a LangGraph server: what it is, and whether its search and its authentication do what the gateway relies on. */
import { randomUUID } from 'node:crypto'
import { TESTED_LANGGRAPH, testedLangGraph, type Tested } from '../../core/route/runtime-version.ts'
import { LANGGRAPH } from '../../core/route/transport.ts'
import { askServer } from '../../http/upstream/langgraph-probe.ts'
import { SEARCH } from '../../http/upstream/thread-pages.ts'
import { upstreamRequest } from '../../http/upstream/upstream.ts'
import type { Json } from '../../core/json/read.ts'
import { notChecked, ok, problem, unknown, warning, type Result } from './finding.ts'
import { askUpstream, objectIn, type HttpAnswer } from './requests.ts'
import { settingOf, type Check, type Results, type Subject } from './subject.ts'
import { asCaller } from './threads.ts'

export const SERVER_CHECKS: readonly Check[] = [
  { name: 'upstream.server', run: recognise },
  { name: 'upstream.version', run: ({ known }) => judgeVersion(known.version) },
  { name: 'upstream.search', run: heedsIds },
  { name: 'upstream.studio', run: studioWay },
]

const UNSHOWN = 'the upstream did not answer as a LangGraph server'

async function recognise(subject: Subject, signal: AbortSignal): Promise<Results> {
  const { mount, known, headers } = subject
  const answer = await askServer({ ...subject, basePath: mount.basePath }, signal)
  if (answer.kind === 'away') return notChecked(answer.why)
  const heard = await askUpstream(subject, { method: 'GET', target: `${mount.basePath}/ok`, headers }, signal)
  const isServer = answer.isServer || (heard.status === 200 && objectIn(heard)?.['ok'] === true)
  const refused = [answer.status, heard.status].find((status) => status === 401 || status === 403)
  if (!isServer && refused === undefined) {
    return problem(
      `it is not a LangGraph server: GET ${mount.basePath}/info answered ${answer.status}, and GET ${mount.basePath}/ok ${heard.status}`,
      `correct ${settingOf(subject, 'url')} and ${settingOf(subject, 'basePath')}, or write kind: runtime`,
    )
  }
  known.facts = LANGGRAPH
  known.histories = true
  known.version = answer.version
  if (isServer) return ok('a LangGraph server')
  return unknown(
    `it is not known whether it is a LangGraph server: it answered ${refused}`,
    `write a credential that the server accepts to ${settingOf(subject, 'headers')}, so that the doctor can check more`,
  )
}

const VERSIONS: Readonly<Record<Tested, (version: string) => Result>> = {
  yes: (version) => ok(`LangGraph server ${version}: this gateway is tested with this version`),
  no: (version) =>
    unknown(
      `LangGraph server ${version}: this gateway is tested with ${TESTED_LANGGRAPH} of the JavaScript server`,
      'test yours',
    ),
  newer: (version) =>
    warning(
      `LangGraph server ${version} is newer than ${TESTED_LANGGRAPH}, the version that this gateway is tested with: routes and fields that it adds are refused or dropped`,
      'look for a newer gateway, and test yours',
    ),
  unknown: () => unknown('the upstream does not tell its version'),
}

function judgeVersion(version: string | null): Result {
  return version === null ? notChecked('the server did not tell its version') : VERSIONS[testedLangGraph(version)](version)
}

/** The threads that a search gives for a condition. The random id is of no thread, and nothing is created. */
export function askSearch(
  subject: Subject,
  query: object,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  const asked = { ...headers, accept: 'application/json', 'accept-encoding': 'identity', 'content-type': 'application/json' }
  const body = Buffer.from(JSON.stringify({ limit: 1, select: ['thread_id'], ...query }))
  return askUpstream(
    subject,
    upstreamRequest(LANGGRAPH, subject.mount.basePath, { descriptor: SEARCH, headers: asked, body }),
    signal,
  )
}

function threadsIn({ text }: HttpAnswer): number | null {
  try {
    const value = JSON.parse(text) as Json
    return Array.isArray(value) ? value.length : null
  } catch {
    return null
  }
}

/** The gateway makes searches exact by a condition on ids. It refuses an answer with any other thread. */
async function heedsIds(subject: Subject, signal: AbortSignal): Promise<Results> {
  if (subject.known.facts === null) return notChecked(UNSHOWN)
  const headers = asCaller(subject)
  const answer = await askSearch(subject, { ids: [randomUUID()] }, headers, signal)
  if (answer.status === 401 || answer.status === 403) {
    return notChecked('the server requires a token of a caller for a search', 'pass one with --token-file')
  }
  const found = answer.status === 200 ? threadsIn(answer) : null
  if (found === null) {
    return problem(
      `the server does not take a search for ids: it answered ${answer.status}. The gateway cannot list threads`,
      `use a server with the search of ${TESTED_LANGGRAPH}`,
    )
  }
  if (found > 0) {
    return problem(
      'the search of the server ignores ids: it gave a thread for a random id. The gateway refuses such answers (upstream-list-unreadable), so no caller gets a list',
      `use a server with the search of ${TESTED_LANGGRAPH}`,
    )
  }
  const any = await askSearch(subject, {}, headers, signal)
  if (any.status === 200 && (threadsIn(any) ?? 0) > 0) return ok('the search of the server heeds ids')
  return unknown('the server lists no threads, so it is not known whether its search heeds ids', 'run the doctor again later')
}

/** Its Studio comes from another program: the gateway never forwards this header of a caller. */
const STUDIO = { 'x-auth-scheme': 'langsmith' }

async function studioWay(subject: Subject, signal: AbortSignal): Promise<Results> {
  if (subject.known.facts === null) return notChecked(UNSHOWN)
  const query = { ids: [randomUUID()] }
  const { status: without } = await askSearch(subject, query, {}, signal)
  if (without === 200)
    return ok('the server authenticates no callers, so its way for Studio opens nothing more: see upstream.exposure')
  if (without !== 401 && without !== 403) return unknown(`the server answered a search without a token with ${without}`)
  const { status } = await askSearch(subject, query, STUDIO, signal)
  if (status === 401 || status === 403) return ok('the server authenticates every caller: its way for Studio is closed')
  if (status !== 200) return unknown(`the server answered a search as of Studio with ${status}`)
  return warning(
    'the server lets Studio in without a token (x-auth-scheme: langsmith): a caller who reaches it past the gateway reads and writes all threads',
    'set "disable_studio_auth": true under "auth" in langgraph.json',
  )
}
