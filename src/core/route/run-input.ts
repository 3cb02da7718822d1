/** The keys of a run's body (AG-UI `RunAgentInput`), at every level, with the version of the protocol that each came with. */

/** Releases of `@ag-ui/core` up to 0.0.59, then versions of the protocol. `0.0.48` also stands for older ones. */
export const AG_UI_VERSIONS = ['0.0.48', '0.0.49', '0.0.52', '0.0.54', '0.0.59', '1.0'] as const

export type AgUiVersion = (typeof AG_UI_VERSIONS)[number]

/** `text`: a string, a number, a boolean or null. `json`: any value, which is the application's own. */
export type ValueRule = 'text' | 'json' | ObjectRule | ListRule | VariantsRule

export interface KeyRule {
  /** Null for a key of the runtime. */
  readonly since: AgUiVersion | null
  readonly value: ValueRule
}

export interface ObjectRule {
  readonly kind: 'object'
  /** Where such an object is in the body: `messages[assistant].toolCalls[]`. */
  readonly name: string
  readonly keys: ReadonlyMap<string, KeyRule>
}

/** A single value in its place may be a `text`. */
export interface ListRule {
  readonly kind: 'list'
  readonly name: string
  readonly items: ObjectRule | VariantsRule
}

/** Objects that the text under one key tells apart. */
export interface VariantsRule {
  readonly kind: 'variants'
  readonly name: string
  readonly by: string
  readonly variants: ReadonlyMap<string, ObjectRule>
  /** For an object that is none of them: enough for the upstream to refuse it. */
  readonly unknown: ObjectRule
}

type At<Rule> = (name: string) => Rule
type Keys = Readonly<Record<string, readonly [since: AgUiVersion, value: At<ValueRule>]>>

const text: At<'text'> = () => 'text'
const json: At<'json'> = () => 'json'

function object(keys: Keys): At<ObjectRule> {
  return (name) => {
    const rules = Object.entries(keys).map(([key, [since, value]]) => [key, { since, value: value(`${name}.${key}`) }] as const)
    return { kind: 'object', name, keys: new Map(rules) }
  }
}

function list(items: At<ObjectRule | VariantsRule>): At<ListRule> {
  return (name) => ({ kind: 'list', name, items: items(`${name}[]`) })
}

function variants(by: string, of: Readonly<Record<string, Keys>>): At<VariantsRule> {
  return (name) => {
    const place = name.replace(/\[\]$/, '')
    const rules = Object.entries(of).map(([variant, keys]) => [variant, object(keys)(`${place}[${variant}]`)] as const)
    const unknown = object({ id: ['0.0.48', text], [by]: ['0.0.48', text] })(name)
    return { kind: 'variants', name, by, variants: new Map(rules), unknown }
  }
}

const source = variants('type', {
  data: { type: ['0.0.49', text], value: ['0.0.49', text], mimeType: ['0.0.49', text] },
  url: { type: ['0.0.49', text], value: ['0.0.49', text], mimeType: ['0.0.49', text] },
  file: { type: ['1.0', text], value: ['1.0', text], mimeType: ['1.0', text], provider: ['1.0', text] },
})

const MEDIA: Keys = {
  type: ['0.0.49', text],
  id: ['1.0', text],
  source: ['0.0.49', source],
  metadata: ['0.0.49', json],
}

const PARTS: Readonly<Record<string, Keys>> = {
  text: { type: ['0.0.48', text], id: ['1.0', text], text: ['0.0.48', text], metadata: ['1.0', json] },
  image: MEDIA,
  audio: MEDIA,
  video: MEDIA,
  document: MEDIA,
}

/** AG-UI 1.0 no longer has it. */
const BINARY: Keys = {
  type: ['0.0.48', text],
  mimeType: ['0.0.48', text],
  id: ['0.0.48', text],
  url: ['0.0.48', text],
  data: ['0.0.48', text],
  filename: ['0.0.48', text],
}

const toolCall = object({
  id: ['0.0.48', text],
  type: ['0.0.48', text],
  function: ['0.0.48', object({ name: ['0.0.48', text], arguments: ['0.0.48', text] })],
  encryptedValue: ['0.0.48', text],
  metadata: ['0.0.59', json],
})

const ANY_MESSAGE: Keys = {
  id: ['0.0.48', text],
  role: ['0.0.48', text],
  subagentRunId: ['0.0.59', text],
  metadata: ['0.0.59', json],
}

const NAMED_MESSAGE: Keys = { ...ANY_MESSAGE, name: ['0.0.48', text], encryptedValue: ['0.0.48', text] }

const message = variants('role', {
  developer: { ...NAMED_MESSAGE, content: ['0.0.48', text] },
  system: { ...NAMED_MESSAGE, content: ['0.0.48', text] },
  assistant: { ...NAMED_MESSAGE, content: ['0.0.48', text], toolCalls: ['0.0.48', list(toolCall)] },
  user: { ...NAMED_MESSAGE, content: ['0.0.48', list(variants('type', { ...PARTS, binary: BINARY }))] },
  tool: {
    ...ANY_MESSAGE,
    // A list of parts since 1.0.
    content: ['0.0.48', list(variants('type', PARTS))],
    toolCallId: ['0.0.48', text],
    error: ['0.0.48', text],
    encryptedValue: ['0.0.48', text],
  },
  activity: { ...ANY_MESSAGE, activityType: ['0.0.48', text], content: ['0.0.48', json] },
  reasoning: { ...ANY_MESSAGE, content: ['0.0.48', text], encryptedValue: ['0.0.48', text] },
})

const tool = object({
  name: ['0.0.48', text],
  description: ['0.0.48', text],
  parameters: ['0.0.48', json],
  metadata: ['0.0.52', json],
})

const tools = list(tool)

/** The runtime's LangGraph agent adds the tools in the state to those of the run. */
export const TOOLS_IN_STATE: ListRule = tools('state.tools')

function input(keys: Keys): ReadonlyMap<string, KeyRule> {
  return new Map(Object.entries(keys).map(([key, [since, value]]) => [key, { since, value: value(key) }]))
}

/** The policy decides about `state` and `forwardedProps`. */
export const RUN_INPUT: ReadonlyMap<string, KeyRule> = input({
  threadId: ['0.0.48', text],
  runId: ['0.0.48', text],
  parentRunId: ['0.0.48', text],
  messages: ['0.0.48', list(message)],
  tools: ['0.0.48', tools],
  context: ['0.0.48', list(object({ description: ['0.0.48', text], value: ['0.0.48', text] }))],
  state: ['0.0.48', json],
  forwardedProps: ['0.0.48', json],
  resume: [
    '0.0.54',
    list(
      object({
        interruptId: ['0.0.54', text],
        status: ['0.0.54', text],
        payload: ['0.0.54', json],
        metadata: ['0.0.59', json],
      }),
    ),
  ],
  protocolVersion: ['1.0', text],
})

/** Runtimes of the managed platform read `lastSeenEventId`. */
export const CONNECT_INPUT: ReadonlyMap<string, KeyRule> = new Map([
  ...RUN_INPUT,
  ['lastSeenEventId', { since: null, value: 'text' }],
])
