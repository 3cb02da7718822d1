/** Warnings for an operator about a policy that the gateway may still serve. */
import { isUnsafeProp } from '../core/route/forwarded-props.ts'
import { isAgentId } from '../core/route/ids.ts'
import { ROUTE_IDS, type UpstreamApi } from '../core/route/all-routes.ts'
import { LANGGRAPH_ROUTES } from '../core/route/langgraph-routes.ts'
import { OWN_ROUTES, type RouteId } from '../core/route/routes.ts'
import type { OperatorSelector, Rule } from '../core/decide/rules.ts'
import type { Report } from '../document/document.ts'
import type { PolicySurroundings } from './faults.ts'
import { makeReach, type Reach, type Silence } from './reach.ts'
import type { PolicyFile, RuleOfFile } from './schema.ts'

interface Line {
  readonly at: number
  readonly written: RuleOfFile
  readonly rule: Rule
}

/** Reports only certain faults. `rules` are compiled, in the file's order; `operators` have their issuers filled in. */
export function checkForWarnings(
  file: PolicyFile,
  rules: readonly Rule[],
  operators: readonly OperatorSelector[],
  surroundings: PolicySurroundings,
  warn: Report,
): void {
  const lines = rules.flatMap((rule, at): readonly Line[] => {
    const written = file.rules[at]
    return written === undefined ? [] : [{ at, written, rule }]
  })
  const reach = makeReach({ operators, sharing: file.sharing }, surroundings)
  const isLarge = lines.length ** 2 * (operators.length + 1) > MOST_COMPARED
  /** In mode `off` one warning covers everything that only operators may do. */
  const said = surroundings.mode === 'off' && file.operators.length > 0 ? lines.filter(({ rule }) => isForOperators(rule)) : null
  warnOfProps(['forwardedProps'], file.forwardedProps, warn)
  warnOfRunParts(['langgraph'], file.langgraph, warn)
  warnOfSharing(file, warn)
  warnOfAnswers(lines, warn)
  if (said !== null) warnOfNoOperators(said, warn)
  for (const at of reach.idleSelectors(rules)) warn(['operators', at], ...IDLE)
  for (const line of lines) {
    warnOfProps(['rules', line.at, 'forwardedProps'], line.written.forwardedProps ?? [], warn)
    if (line.written.langgraph !== undefined) warnOfRunParts(['rules', line.at, 'langgraph'], line.written.langgraph, warn)
    warnOfAgents(line, warn)
    warnOfHistory(line, warn)
    warnOfIdleMessageRules(line, warn)
    if (said?.includes(line) !== true) warnOfRule(line, isLarge ? [] : lines, reach, warn)
  }
  warnOfClosedRoutes(lines, reach, said ?? [], surroundings.apis ?? null, warn)
}

/** The most pairs of rules that are compared per kind of operator: a reload must be quick. */
const MOST_COMPARED = 100_000

const SILENCES: Readonly<Record<Silence, readonly [message: string, hint: string]>> = {
  'nobody-anonymous': [
    'never matches: authentication.mode is required, so no caller is anonymous',
    'remove the rule, or set the mode to optional',
  ],
  'mode-off': [
    'never matches: authentication.mode is off, so callers have no issuer, role, permission or claim, and none is an operator',
    'remove the rule, or require sign-in',
  ],
  'no-operators': ['never matches: the policy has no operators', 'add them under operators, or remove the rule'],
  conditions: [
    'never matches: no caller can meet all of its conditions',
    'its issuers and claims contradict each other or those of operators',
  ],
  unless: ['never matches: unless exempts every caller that the rule selects', 'remove one of the two'],
}

const IDLE = [
  'selects operators that no rule for operators can match',
  'the conditions of these rules exclude its issuer, role or permission',
] as const

function warnOfRule(line: Line, lines: readonly Line[], reach: Reach, warn: Report): void {
  const { at, written, rule } = line
  if (rule.who.length === 0) return
  const say = ([message, hint]: readonly [message: string, hint: string]): void =>
    warn(['rules', at], message, hint + stillRefusing(rule))
  const silence = reach.silenceOf(rule)
  if (silence !== null) say(SILENCES[silence])
  if (silence !== null || rule.effect === 'deny') return
  const routes = routesOf(written)
  const on = (some: readonly RouteId[]): string => (some.length === routes.length ? '' : ` on ${some.join(', ')}`)
  const denying = (route: RouteId): readonly Rule[] =>
    rulesOn(lines, route).filter(({ effect, threads }) => effect === 'deny' && threads === null)
  const before = lines.slice(0, at)
  const earlier = (route: RouteId): readonly Rule[] => rulesOn(before, route).filter(({ effect }) => effect === 'allow')
  const denied = routes.filter((route) => reach.coveredBy(rule, route, denying(route)) !== null)
  const opened = routes.filter((route) => !denied.includes(route) && reach.coveredBy(rule, route, earlier(route)) !== null)
  const [firstDenied] = denied
  const [firstOpened] = opened
  if (firstDenied !== undefined) say(ALL_DENIED(on(denied), placeOf(reach.coveredBy(rule, firstDenied, denying(firstDenied)))))
  if (firstOpened !== undefined) say(OPEN_BEFORE(on(opened), placeOf(reach.coveredBy(rule, firstOpened, earlier(firstOpened)))))
}

/** A rule that never allows or denies may still fail, and a failed rule refuses. */
function stillRefusing({ when, unless }: Rule): string {
  const asked = [when, unless ?? {}].some(({ roles, permissions, claims }) => roles ?? permissions ?? claims)
  return asked ? '; it still refuses callers whose claim has another type' : ''
}

type Saying = (on: string, other: string) => readonly [message: string, hint: string]

const ALL_DENIED: Saying = (on, other) => [
  `allows nothing${on}: ${other} denies all of it`,
  'narrow the deny rule, or remove this one',
]

const OPEN_BEFORE: Saying = (on, other) => [
  `allows nothing${on} that ${other} does not already allow, so its forwarded fields and limits never apply`,
  'the first matching allow rule decides: move this rule before it, or remove it',
]

function warnOfAgents({ at, written }: Line, warn: Report): void {
  for (const [place, id] of (written.agents ?? []).entries()) {
    if (isAgentId(id)) continue
    const hint = 'an agent id has letters, digits, . _ - and is not a word of a route'
    warn(['rules', at, 'agents', place], 'never matches: no request can name this agent', hint)
  }
}

function warnOfNoOperators(silent: readonly Line[], warn: Report): void {
  const rules = silent.length === 0 ? '' : `, so these rules never match: ${silent.map(({ rule }) => placeOf(rule)).join(', ')}`
  const message = `no caller is an operator while authentication.mode is off${rules}`
  warn(['operators'], message, 'require sign-in, or remove operators')
}

/** Routes that no caller may use, although no rule says so. */
function warnOfClosedRoutes(
  lines: readonly Line[],
  reach: Reach,
  said: readonly Line[],
  apis: readonly UpstreamApi[] | null,
  warn: Report,
): void {
  const meant = (route: RouteId): boolean =>
    lines.some(({ written, rule }) => rule.effect === 'allow' && rule.who.length === 0 && routesOf(written).includes(route))
  const opening = (route: RouteId): readonly Line[] =>
    lines.filter(
      ({ written, rule: { effect, who } }) => effect === 'allow' && who.length > 0 && routesOf(written).includes(route),
    )
  const hasServer = apis?.includes('langgraph') === true
  const isServerClosed = hasServer && LANGGRAPH_IDS.every((route) => opening(route).length === 0) && !LANGGRAPH_IDS.every(meant)
  if (isServerClosed) {
    warn(
      ['rules'],
      'no rule allows a route of a LangGraph server: the gateway refuses every request to it',
      'copy the rules whose names begin with langgraph from the default policy',
    )
  }
  // A server whose routes are all closed has its own warning.
  const isOfUpstream = (route: RouteId): boolean => {
    if (apis === null || isOwn(route)) return true
    return LANGGRAPH_IDS.includes(route) ? hasServer && !isServerClosed : apis.some((api) => api !== 'langgraph')
  }
  const open = ROUTE_IDS.filter((route) => isOfUpstream(route) && !meant(route))
  const unsaid = open.filter((route) => opening(route).length === 0)
  const silent = open.filter((route) => {
    const rules = opening(route)
    return rules.some((line) => !said.includes(line)) && rules.every(({ rule }) => reach.silenceOf(rule) !== null)
  })
  const say = (routes: readonly RouteId[], why: string, hint: string): void => {
    if (routes.length > 0) warn(['rules'], `no caller may use ${routes.join(', ')}: ${why}`, hint)
  }
  say(unsaid, 'no rule allows it', 'for routes that are closed on purpose, add a rule with allow: []')
  say(silent, 'the rules that allow it never match', 'correct these rules, or write allow: [] there')
}

const LANGGRAPH_IDS: readonly RouteId[] = [...new Set(LANGGRAPH_ROUTES.map(({ id }) => id))]

function isOwn(route: RouteId): boolean {
  return OWN_ROUTES.some(({ id }) => id === route)
}

function routesOf({ routes }: RuleOfFile): readonly RouteId[] {
  return routes === 'all' ? ROUTE_IDS : routes
}

function rulesOn(lines: readonly Line[], route: RouteId): readonly Rule[] {
  return lines.filter(({ written }) => routesOf(written).includes(route)).map(({ rule }) => rule)
}

function isForOperators({ who }: Rule): boolean {
  return who.length > 0 && who.every((one) => one === 'operator')
}

function placeOf(rule: Rule | null): string {
  if (rule === null) return ''
  return rule.line === undefined ? rule.name : `${rule.name} (line ${rule.line})`
}

function warnOfProps(path: readonly PropertyKey[], props: PolicyFile['forwardedProps'], warn: Report): void {
  for (const [at, { name }] of props.entries()) {
    if (isUnsafeProp(name)) warn([...path, at, 'name'], `${name} is unsafe: callers choose its value`)
  }
}

const UNSAFE_OPTIONS: Readonly<Record<string, string>> = {
  context: "callers choose values in the graph's configuration, which may say who the user is",
  langsmith_tracer: 'callers choose the project to which the server sends what a run does',
  supersteps: 'callers write the state of a new thread as any node, and with any command',
  webhook: 'callers choose an address to which the server sends the result of a run',
}

const UNSAFE_COMMANDS: Readonly<Record<string, string>> = {
  goto: 'callers choose the next node of the graph',
  update: 'callers write any part of the state, with messages of any role, whatever input and messages say',
}

/** What reaches further than the input of a run. */
function warnOfRunParts(path: readonly PropertyKey[], parts: PolicyFile['langgraph'], warn: Report): void {
  for (const [at, name] of parts.options.entries()) {
    const why = UNSAFE_OPTIONS[name]
    if (why !== undefined) warn([...path, 'options', at], `${name} is unsafe: ${why}`)
  }
  for (const [at, name] of parts.command.entries()) {
    const why = UNSAFE_COMMANDS[name]
    if (why !== undefined) warn([...path, 'command', at], `${name} is unsafe: ${why}`)
  }
  for (const [at, name] of parts.configurable.entries()) {
    warn([...path, 'configurable', at], `${name} is unsafe: callers choose its value in the configuration of the graph`)
  }
}

/** The gateway reads the roles and the number of messages in the input of a graph, and no more of them. */
function warnOfIdleMessageRules({ at, written, rule }: Line, warn: Report): void {
  if (!isAllowing(written) || !isOn(written, 'langgraph/runs/create')) return
  const { size, media, schemes, history } = rule.passes.messages
  const idle = [
    ...(size === 'off' ? [] : ['size']),
    ...(media === 'all' ? [] : ['media']),
    ...(schemes === 'all' ? [] : ['schemes']),
    ...(history === 'trust' ? [] : ['history']),
  ]
  if (idle.length === 0) return
  const named = idle.map((key) => `messages.${key}`).join(', ')
  const verb = idle.length === 1 ? 'has' : 'have'
  warn(['rules', at], `${named} ${verb} no effect on langgraph/runs/create`, 'limit the body with limits.body')
}

/** Finds the switch without rules, rules without the switch, and threads that callers can find but not open. */
function warnOfSharing({ sharing, rules }: PolicyFile, warn: Report): void {
  const lines = rules.map((rule, at) => ({ rule, at }))
  const opening = lines.filter(({ rule }) => isAllowing(rule) && rule.threads?.includes('shared') === true)
  const [first] = opening
  if (!sharing) {
    const granting = lines.find(({ rule }) => isAllowing(rule) && isOn(rule, 'threads/grants'))
    const off = 'grants have no effect while sharing is false'
    const hint = 'write sharing: true'
    if (first !== undefined) warn(['rules', first.at, 'threads'], `${off}, so shared never matches`, hint)
    if (granting !== undefined) warn(['rules', granting.at, 'routes'], `${off}, so owners cannot share`, hint)
    return
  }
  if (first === undefined) {
    warn(['sharing'], 'no rule allows shared threads', 'add shared to the threads of rules that have own, or set sharing: false')
    return
  }
  const opened = (id: RouteId): boolean => opening.some(({ rule }) => isOn(rule, id))
  if (opened('threads/messages') === opened('agent/connect')) return
  warn(
    ['sharing'],
    opened('threads/messages')
      ? 'shared threads are listed, but no rule allows agent/connect for them: a chat cannot show them'
      : 'a chat can show shared threads, but no rule allows threads/messages for them: no list has them',
    'add shared to the threads of both',
  )
}

/** These routes take the same body, and a runtime resumes on more than one of them. */
const ANSWERING: readonly RouteId[] = [
  'agent/run',
  'agent/connect',
  'agent/suggest',
  'langgraph/runs/create',
  'langgraph/threads/state',
]

/** A user who may not answer on one route could answer on another one. */
function warnOfAnswers(lines: readonly Line[], warn: Report): void {
  const refuses = ({ rule }: Line): boolean => rule.passes.interrupts === 'refuse'
  const allowing = (route: RouteId): readonly Line[] => lines.filter(({ written }) => isAllowing(written) && isOn(written, route))
  if (!ANSWERING.some((route) => allowing(route).some(refuses))) return
  const open = ANSWERING.filter((route) => allowing(route).length > 0 && !allowing(route).some(refuses))
  if (open.length === 0) return
  const hint = 'write interrupts: refuse for the file, and interrupts: pass in the rules of those who may answer'
  warn(['rules'], `interrupts are refused on other routes, but no rule refuses them on ${open.join(', ')}`, hint)
}

/** Clients ask for suggestions in another thread, so only runs are verified. An agent may store what a suggestion has. */
function warnOfHistory({ at, written, rule }: Line, warn: Report): void {
  const { history, roles } = rule.passes.messages
  if (history === 'trust' || !isAllowing(written) || !isOn(written, 'agent/suggest')) return
  if (!roles.has('assistant') && !roles.has('tool')) return
  const hint = 'give agent/suggest a rule of its own, with messages: { roles: [user] }'
  warn(['rules', at], 'messages.history is verify, but messages of agent/suggest are not verified', hint)
}

function isAllowing({ allow }: RuleOfFile): boolean {
  return (allow ?? []).length > 0
}

function isOn({ routes }: RuleOfFile, id: RouteId): boolean {
  return routes !== 'all' && routes.includes(id)
}
