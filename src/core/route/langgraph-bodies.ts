/** What a body to a LangGraph server may say: which thread, assistant and options (docs/reference/langgraph-routes.md, "Bodies"). */
import { isObject, type Json, type JsonObject } from '../json/read.ts'
import type { Steps } from '../json/steps.ts'
import { refuse, type Refusal } from '../reasons.ts'
import type { RouteDescriptor } from './classify.ts'
import { isAgentId, isThreadId } from './ids.ts'
import { answersToCommand, type InterruptAnswer } from './interrupt-answers.ts'
import type { MessageRules } from './message-rules.ts'
import { RUN_OPTIONS } from './langgraph-routes.ts'
import type { Route } from './routes.ts'

export const COMMANDS = ['resume', 'update', 'goto'] as const

/** What a policy lets callers say besides the input of a run. */
export interface LangGraphRules {
  readonly options: ReadonlySet<string>
  readonly command: ReadonlySet<string>
  /** Names in `config.configurable`. */
  readonly configurable: ReadonlySet<string>
  /** The parts of the graph's state that callers may set. */
  readonly input: ReadonlySet<string> | 'all'
}

/**
 * Names in `config.configurable` that no policy opens: they say whose thread, run or checkpoint it is, or who the user is. The
 * server itself puts the user and every `x-` header there, and a name of the caller's would stand where it puts none.
 */
export function isReservedConfigurable(name: string): boolean {
  return (
    /^(?:thread_|run_|user_|assistant_|graph_|checkpoint|langgraph_|langsmith|x-|__)/i.test(name) ||
    ['user-agent', 'thread', 'user', 'assistant', 'permissions'].includes(name.toLowerCase())
  )
}

/** The members of a thread's or run's metadata by which the server finds its graph and its parts. */
const IDS_IN_METADATA = new Set(['thread_id', 'run_id', 'assistant_id', 'graph_id', 'user_id'])

type Checked = { readonly outcome: 'checked'; readonly descriptor: RouteDescriptor } | Refusal

/** Finds the assistant, the new thread and the answers to interrupts, and refuses a checkpoint of another thread. */
export function checkLangGraphBody(descriptor: RouteDescriptor, value: JsonObject, keepsContent: boolean): Checked {
  const { route } = descriptor
  let { ids } = descriptor
  if (route.agent === 'body') {
    const agentId = value['assistant_id']
    if (!isAgentId(agentId)) return refuse('agent-id-invalid')
    ids = { ...ids, agentId }
  }
  if (route.thread === 'body') {
    const threadId = value['thread_id']
    if (!isThreadId(threadId)) return refuse('thread-id-invalid')
    ids = { ...ids, threadId }
  }
  for (const place of [value['checkpoint'], value['before']]) {
    const refusal = foreignCheckpoint(place, ids.threadId)
    if (refusal !== null) return refusal
  }
  const answers = answersTo(route, value, keepsContent)
  if (answers === 'too-many') return refuse('interrupt-answers-too-many')
  // The server makes the thread, and refuses the steps then.
  const isInSteps = route.unknownThread === 'create' && (value['supersteps'] ?? null) !== null
  const about = { ...descriptor, ids, ...(isInSteps ? { isInSteps } : {}) }
  return { outcome: 'checked', descriptor: answers.length === 0 ? about : { ...about, answers } }
}

/** A state that is written in the name of a node, and the next node of a run, pass over an interrupt without an answer to it. */
function answersTo(route: Route, value: JsonObject, keepsContent: boolean): readonly InterruptAnswer[] | 'too-many' {
  const { as_node: asNode = null, command } = value
  if (route.id === 'langgraph/threads/state') return asNode === null ? [] : [passedOver(keepsContent)]
  if (route.agent !== 'body' || !isObject(command)) return []
  const { goto = null, update = null } = command
  const answers = answersToCommand(command, keepsContent)
  return answers === 'too-many' || (goto === null && update === null) ? answers : [...answers, passedOver(keepsContent)]
}

function passedOver(keepsContent: boolean): InterruptAnswer {
  return { id: null, answer: 'answered', ...(keepsContent ? { content: null } : {}) }
}

/** A checkpoint, or a configuration with one, may name only the thread of the request. */
function foreignCheckpoint(place: Json | undefined, threadId: string | undefined): Refusal | null {
  if (!isObject(place)) return null
  const { configurable = place } = place
  for (const one of [place, configurable]) {
    if (isObject(one) && one['thread_id'] !== undefined && one['thread_id'] !== threadId) return refuse('checkpoint-foreign')
  }
  return null
}

/** What the policy and the decision say of a body. */
interface LangGraphPassing {
  /** Present for a caller without a thread of that id: the server must not take one that it has. */
  readonly isNewThread?: true
  readonly langgraph: LangGraphRules
  readonly messages: MessageRules
}

/** @param dropped takes the names of what does not pass. @returns the same value if all of it passes */
export function* passingLangGraph(
  route: Route,
  value: JsonObject,
  { isNewThread, langgraph: rules, messages }: LangGraphPassing,
  dropped: string[],
): Steps<JsonObject | Refusal> {
  const body: Record<string, Json> = {}
  let isWhole = true
  for (const [key, part] of Object.entries(value)) {
    if (!route.body.keys.includes(key)) {
      dropped.push(key)
      isWhole = false
      continue
    }
    if (isOption(key) && !rules.options.has(key)) {
      // The clients write null for an option that is not set.
      if (part !== null) return refuse('run-option-not-allowed')
      isWhole = false
      continue
    }
    const member = yield* memberPassing(route, key, part, rules, messages, dropped)
    if (member.outcome === 'refused') return member
    body[key] = member.value
    isWhole &&= member.value === part
  }
  if (isNewThread === true && route.unknownThread === 'create' && body['if_exists'] !== 'raise') {
    body['if_exists'] = 'raise'
    isWhole = false
  }
  return isWhole ? value : body
}

/** The refusals by which a policy closes parts of a body. */
export type RefusedPart = 'run-option-not-allowed' | 'command-not-allowed' | 'configurable-not-allowed'

export function isRefusedPart(reason: string): reason is RefusedPart {
  return reason === 'run-option-not-allowed' || reason === 'command-not-allowed' || reason === 'configurable-not-allowed'
}

/** What of a body such a refusal is about, for an operator. */
export function refusedNames(reason: RefusedPart, value: JsonObject, rules: LangGraphRules): readonly string[] {
  const named = (part: Json | undefined): readonly string[] =>
    isObject(part) ? Object.keys(part).filter((key) => part[key] !== null) : []
  switch (reason) {
    case 'run-option-not-allowed':
      return named(value).filter((key) => isOption(key) && !rules.options.has(key))
    case 'command-not-allowed':
      return named(value['command']).filter((key) => !rules.command.has(key))
    case 'configurable-not-allowed': {
      const { config } = value
      const own = isObject(config) ? config['configurable'] : undefined
      return isObject(own) ? Object.keys(own).filter((name) => !rules.configurable.has(name) || isReservedConfigurable(name)) : []
    }
  }
}

function isOption(key: string): boolean {
  return (RUN_OPTIONS as readonly string[]).includes(key)
}

/** In an object of its own: what a caller sends may look like a refusal. */
type Member = { readonly outcome: 'passes'; readonly value: Json } | Refusal

function passes(value: Json): Member {
  return { outcome: 'passes', value }
}

function* memberPassing(
  route: Route,
  key: string,
  part: Json,
  rules: LangGraphRules,
  messages: MessageRules,
  dropped: string[],
): Steps<Member> {
  switch (key) {
    case 'checkpoint':
      return passes(only(part, ['checkpoint_id', 'checkpoint_ns', 'checkpoint_map'], key, dropped))
    case 'command':
      return commandPassing(part, rules)
    case 'config':
      return configPassing(part, rules, dropped)
    case 'metadata':
      return route.unknownThread === undefined && route.id !== 'langgraph/threads/update'
        ? passes(part)
        : metadataPassing(route, part, dropped)
    case 'webhook':
      return part === null || isWebhook(part) ? passes(part) : refuse('run-option-not-allowed')
    case 'input':
    case 'values':
      return yield* inputPassing(key, part, rules.input, messages, dropped)
    default:
      return passes(part)
  }
}

function only(part: Json, keys: readonly string[], place: string, dropped: string[]): Json {
  if (!isObject(part)) return part
  const strange = Object.keys(part).filter((key) => !keys.includes(key))
  if (strange.length === 0) return part
  for (const key of strange) dropped.push(`${place}.${key}`)
  return Object.fromEntries(Object.entries(part).filter(([key]) => keys.includes(key)))
}

function commandPassing(part: Json, { command }: LangGraphRules): Member {
  if (!isObject(part)) return part === null ? passes(part) : refuse('command-not-allowed')
  const named = Object.entries(part).filter(([, value]) => value !== null)
  return named.every(([key]) => command.has(key)) ? passes(part) : refuse('command-not-allowed')
}

function configPassing(part: Json, { configurable }: LangGraphRules, dropped: string[]): Member {
  if (!isObject(part)) return passes(part)
  const config = only(part, ['tags', 'recursion_limit', 'configurable'], 'config', dropped) as JsonObject
  const own = config['configurable']
  if (!isObject(own)) return passes(config)
  return Object.keys(own).every((name) => configurable.has(name) && !isReservedConfigurable(name))
    ? passes(config)
    : refuse('configurable-not-allowed')
}

/** The server sends a webhook without an origin to itself, where it would do what no caller may do. */
function isWebhook(part: Json): boolean {
  return typeof part === 'string' && /^https?:\/\/[^/\\]/i.test(part) && URL.canParse(part)
}

function metadataPassing(route: Route, part: Json, dropped: string[]): Member {
  if (!isObject(part)) return passes(part)
  // The server looks its graphs up by this name in an object: `__proto__` breaks it for all users, until it is restarted.
  const graphId = part['graph_id'] ?? null
  if (route.unknownThread === 'create' && graphId !== null && !isAgentId(graphId)) return refuse('agent-id-invalid')
  const isKept = (name: string): boolean =>
    !(IDS_IN_METADATA.has(name) || /^(?:langgraph_|__)/.test(name)) || (name === 'graph_id' && route.unknownThread === 'create')
  const strange = Object.keys(part).filter((name) => !isKept(name))
  for (const name of strange) dropped.push(`metadata.${name}`)
  return passes(strange.length === 0 ? part : Object.fromEntries(Object.entries(part).filter(([name]) => isKept(name))))
}

const MESSAGES_AT_ONCE = 256

/** The role of a message decides; what the server would take for a message of another kind has that kind's role. */
function* inputPassing(
  place: string,
  whole: Json,
  input: LangGraphRules['input'],
  rules: MessageRules,
  dropped: string[],
): Steps<Member> {
  if (actsAsCommand(whole)) return refuse('command-not-allowed')
  if (!isObject(whole)) {
    if (whole !== null && input !== 'all') {
      dropped.push(place)
      return passes(null)
    }
    // A graph whose whole state is a list of messages takes it without a name.
    return Array.isArray(whole) ? yield* messagesPassing(whole as readonly Json[], rules, dropped) : passes(whole)
  }
  const part = input === 'all' ? whole : only(whole, [...input], place, dropped)
  if (!isObject(part) || part['messages'] === undefined) return passes(part)
  const given = part['messages']
  const list = Array.isArray(given) ? (given as readonly Json[]) : [given]
  const messages = yield* messagesPassing(list, rules, dropped)
  if (messages.outcome === 'refused') return messages
  return passes(messages.value === list ? part : { ...part, messages: messages.value })
}

/** `input` is a command to the server if it looks like one, although `command` says nothing (`isCommand` of LangGraph). */
function actsAsCommand(value: Json): boolean {
  return Array.isArray(value) ? (value as readonly Json[]).some(isMarked) : isMarked(value)
}

/** LangGraph takes a value for one of its own objects, such as a command or a channel's new value, by such a member. */
function isMarked(value: Json): boolean {
  return isObject(value) && (value['lg_name'] !== undefined || value['__overwrite__'] !== undefined)
}

/** @returns the same list if all of it passes */
function* messagesPassing(list: readonly Json[], rules: MessageRules, dropped: string[]): Steps<Member> {
  const kept: Json[] = []
  for (const [at, message] of list.entries()) {
    if (at % MESSAGES_AT_ONCE === MESSAGES_AT_ONCE - 1) yield
    const roles = rolesOf(message)
    if (roles.length > 0 && roles.every((role) => rules.roles.has(role))) kept.push(message)
    else if (rules.others === 'refuse') return refuse('message-role-not-allowed')
    else dropped.push(`messages[${roles.find((role) => !rules.roles.has(role)) ?? ''}]`)
  }
  if (rules.most !== 'off' && kept.length > rules.most) return refuse('messages-too-many')
  return passes(kept.length === list.length ? list : kept)
}

const ROLE_OF_TYPE: Readonly<Record<string, string>> = {
  human: 'user',
  user: 'user',
  ai: 'assistant',
  assistant: 'assistant',
  tool: 'tool',
  system: 'system',
  developer: 'developer',
  HumanMessage: 'user',
  HumanMessageChunk: 'user',
  AIMessage: 'assistant',
  AIMessageChunk: 'assistant',
  ToolMessage: 'tool',
  SystemMessage: 'system',
}

/** The forms that LangChain takes for a message (`coerceMessageLikeToMessage`). Empty for a form without a known role. */
function rolesOf(message: Json): readonly string[] {
  if (typeof message === 'string') return ['user']
  if (Array.isArray(message)) return known([message[0] as Json])
  if (!isObject(message) || isMarked(message)) return []
  const { type, role, id, lc } = message
  // A serialised message: `{ lc: 1, type: 'constructor', id: [..., 'HumanMessage'], kwargs }`. A role beside it would win.
  const isSerialised = lc !== undefined || type === 'constructor'
  const names = isSerialised
    ? [Array.isArray(id) ? (id.at(-1) as Json) : null, type === 'constructor' ? null : type, role]
    : [type, role]
  return known(names.filter((one) => one !== undefined && one !== null))
}

function known(names: readonly Json[]): readonly string[] {
  const roles = names.map((name) => (typeof name === 'string' ? (ROLE_OF_TYPE[name] ?? '') : ''))
  return roles.includes('') ? [] : roles
}
