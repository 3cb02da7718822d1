/** What an explanation says about a request to a LangGraph server besides its decision. */
import { isRefusedPart, isReservedConfigurable, refusedNames, type RefusedPart } from '../../core/route/langgraph-bodies.ts'
import { isObject, type JsonObject } from '../../core/json/read.ts'
import { isRefusal } from '../../core/reasons.ts'
import { jsonOf } from '../../http/upstream/upstream.ts'
import { listText, ruleText } from './decision-text.ts'
import type { Explanation, Question } from './explain.ts'

const PLACES: Readonly<Record<RefusedPart, readonly [what: string, key: string]>> = {
  'run-option-not-allowed': ['the option', 'langgraph.options'],
  'command-not-allowed': ['the command', 'langgraph.command'],
  'configurable-not-allowed': ['config.configurable', 'langgraph.configurable'],
}

export function langGraphNotes(explanation: Explanation, question: Question): readonly string[] {
  const { outcome, mount, descriptor, facts } = explanation
  if (mount?.api !== 'langgraph' || outcome === 'key-set') return []
  if (isRefusal(outcome)) {
    if (outcome.reason === 'route-closed') return ['no policy can open this route of a LangGraph server']
    return isRefusedPart(outcome.reason) ? refusedParts(outcome.reason, explanation, question) : []
  }
  const { route, ids } = outcome.descriptor
  const isSearch = route.id === 'langgraph/threads/search' || route.id === 'langgraph/threads/count'
  return [
    ...(ids.runId === undefined
      ? []
      : ['assumed: the run is of this thread. The gateway asks the server first, and answers 404 (run-unknown) for another run']),
    ...(route.copiesThread === true ? ['the copy becomes a thread of the caller'] : []),
    ...(isSearch && facts?.enforcement === 'enforce'
      ? [
          'the server gets the ids of the threads that the caller may read as a condition. For a caller without threads, the gateway answers itself',
        ]
      : []),
    ...(isUnnamed(explanation, question) ? ['the body names no thread: the gateway chooses a random id'] : []),
    ...(route.unknownThread === 'create' && outcome.begins && descriptor !== null
      ? ['the gateway tells the server to refuse an id that it has (if_exists: raise)']
      : []),
  ]
}

/** True if the gateway chooses the id of a new thread. */
export function isUnnamed({ descriptor }: Explanation, question: Question): boolean {
  return descriptor?.route.unknownThread === 'create' && bodyOf(question)?.['thread_id'] === undefined
}

function refusedParts(reason: RefusedPart, { trace }: Explanation, question: Question): readonly string[] {
  const body = bodyOf(question)
  const decision = trace?.decision
  if (body === null || decision?.outcome !== 'permitted') return []
  const { rule } = decision
  const names = refusedNames(reason, body, rule.passes.langgraph)
  const reserved = reason === 'configurable-not-allowed' ? names.filter(isReservedConfigurable) : []
  const closed = names.filter((name) => !reserved.includes(name))
  const [what, key] = PLACES[reason]
  return [
    ...(closed.length === 0 ? [] : [`${ruleText(rule)} does not allow ${what} ${listText(closed)}: ${key} does not name it`]),
    ...(reserved.length === 0
      ? []
      : [`no policy can open ${what} ${listText(reserved)}: it names a thread, a run, an assistant or a user`]),
    ...(names.length === 0 ? [`${what} is not an object`] : []),
  ]
}

function bodyOf({ body }: Question): JsonObject | null {
  const value = jsonOf(Buffer.from(body))
  return isObject(value) ? value : null
}
