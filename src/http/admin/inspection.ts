/** The routes of the admin API that show what the running gateway does and follows. */
import { z } from 'zod'
import { isRefusal, refuse } from '../../core/reasons.ts'
import { note, notFound, type AdminRefusal } from './answers.ts'
import { answer, type AddOperation } from './operations.ts'
import {
  budgetSchema,
  configurationSchema,
  decisionSchema,
  explanationSchema,
  minuteSchema,
  policySchema,
  statusSchema,
  streamSchema,
  type BudgetUsed,
  type Configuration,
  type Decision,
  type Explained,
  type MinuteOfDecisions,
  type ActivePolicy,
  type Status,
  type Stream,
} from './schemas.ts'

/** What the processes of a gateway know of themselves. */
export interface Inspection {
  status(): Promise<Status>
  /** The last ones, the latest first. */
  decisions(): Promise<readonly Decision[]>
  /** Of the last hour, the latest first. */
  minutes(): Promise<readonly MinuteOfDecisions[]>
  streams(): Promise<readonly Stream[]>
  budgets(question: BudgetQuestion): Promise<readonly BudgetUsed[]>
  /** False if the request has no open stream. */
  endStream(requestId: string): Promise<boolean>
  policy(): Promise<ActivePolicy>
  configuration(): Configuration
  /** Null for an id of no recent request. */
  explain(question: ExplainQuestion): Promise<Explained | { readonly fault: string } | null>
}

export type BudgetQuestion =
  | { readonly kind: 'user'; readonly user: string }
  | { readonly kind: 'group'; readonly group: string }
  | { readonly kind: 'claim'; readonly at: string; readonly issuer: string; readonly value: string }

export type ExplainQuestion = z.output<typeof questionForm>

const MOST_DECISIONS = 1000
const DEFAULT_DECISIONS = 200

const filter = z.string().min(1).max(16_384).optional()
const DECISIONS_QUERY = {
  route: filter.describe('Only decisions about this route.'),
  reason: filter.describe('Only this reason, `permitted` for requests that were not refused, or `refused` for all others.'),
  user: filter.describe('Only this user id.'),
  thread: filter.describe('Only this thread id.'),
  limit: z
    .string()
    .regex(/^[1-9]\d{0,3}$/)
    .optional()
    .meta({ description: `At most so many, up to ${MOST_DECISIONS}; ${DEFAULT_DECISIONS} by default.` }),
}

const BUDGETS_QUERY = {
  user: filter.describe('The use of this user, by user id.'),
  group: filter.describe('The use of this group, as `issuer:group`.'),
  claim: filter.describe('The use of all users with one value of this claim: its JSON pointer, as in the budget.'),
  issuer: filter.describe('With `claim`: the issuer id.'),
  value: filter.describe('With `claim`: its value.'),
}

const BUDGETS_FORM = 'Write ?user=ID, ?group=ISSUER:GROUP, or ?claim=POINTER&issuer=ID&value=VALUE.'

const EXPLAIN_FORM =
  'Write {"requestId": "…"}, {"line": {…}} with a line of the audit log, or {"method": "GET", "target": "/…", "claims": {…}, "issuer": "…"}.'

const questionForm = z
  .strictObject(
    {
      requestId: z.string(EXPLAIN_FORM).min(1).max(100).optional().describe('`x-request-id` of an answer.'),
      line: z
        .looseObject({ audit: z.literal(1) }, EXPLAIN_FORM)
        .optional()
        .describe('A line of the audit log.'),
      method: z
        .string(EXPLAIN_FORM)
        .regex(/^[A-Z]{1,20}$/, 'method must be an HTTP method in capitals.')
        .optional(),
      target: z.string(EXPLAIN_FORM).startsWith('/', 'target must begin with /.').max(16_384).optional(),
      claims: z
        .looseObject({}, EXPLAIN_FORM)
        .optional()
        .describe('Claims of a token, used without verification; without them, the caller is not signed in.'),
      issuer: z
        .string(EXPLAIN_FORM)
        .optional()
        .describe('The key of the issuer of the claims; by default the one that `iss` names.'),
    },
    EXPLAIN_FORM,
  )
  .refine(
    ({ requestId, line, method, target }) =>
      [requestId, line, target].filter((one) => one !== undefined).length === 1 &&
      (method === undefined) === (target === undefined),
    EXPLAIN_FORM,
  )
  .meta({ override: { oneOf: [{ required: ['requestId'] }, { required: ['line'] }, { required: ['method', 'target'] }] } })

export function addInspectionRoutes(addOperation: AddOperation, inspection: Inspection): void {
  addOperation(
    {
      method: 'GET',
      url: '/status',
      id: 'status',
      action: 'status',
      summary: 'Shows the version, the active configuration, the pending conditions, the issuers and the upstreams.',
      answers: { 200: { description: 'The status of all processes.', schema: statusSchema } },
      refusals: [],
    },
    async () => answer(200, await inspection.status()),
  )
  addOperation(
    {
      method: 'GET',
      url: '/decisions',
      id: 'listDecisions',
      action: 'decisions',
      summary: `Lists the last decisions, the latest first. Each process keeps ${MOST_DECISIONS} of them in memory.`,
      query: DECISIONS_QUERY,
      answers: {
        200: { description: 'The decisions.', schema: z.strictObject({ decisions: z.array(decisionSchema).readonly() }) },
      },
      refusals: [400],
    },
    async ({ query }) => {
      const read = z.strictObject(DECISIONS_QUERY).safeParse(query)
      if (!read.success)
        return { ...refuse('query-encoding'), text: 'limit is a number from 1 to 1000; other parameters are not empty.' }
      const { limit, ...wanted } = read.data
      const found = (await inspection.decisions()).filter((decision) => isWanted(decision, wanted))
      return answer(200, { decisions: found.slice(0, Math.min(Number(limit ?? DEFAULT_DECISIONS), MOST_DECISIONS)) })
    },
  )
  addOperation(
    {
      method: 'GET',
      url: '/decisions/minutes',
      id: 'countDecisions',
      action: 'decisions',
      summary: 'Counts the decisions of each minute of the last hour, by reason.',
      answers: {
        200: { description: 'The latest minute first.', schema: z.strictObject({ minutes: z.array(minuteSchema).readonly() }) },
      },
      refusals: [],
    },
    async () => answer(200, { minutes: await inspection.minutes() }),
  )
  addOperation(
    {
      method: 'GET',
      url: '/streams',
      id: 'listStreams',
      action: 'streams',
      summary: 'Lists the open event streams.',
      answers: {
        200: { description: 'The oldest first.', schema: z.strictObject({ streams: z.array(streamSchema).readonly() }) },
      },
      refusals: [],
    },
    async () => answer(200, { streams: await inspection.streams() }),
  )
  addOperation(
    {
      method: 'DELETE',
      url: '/streams/:id',
      id: 'endStream',
      action: 'end-stream',
      summary: 'Ends an event stream with the RUN_ERROR event `ended-by-operator`.',
      about: 'The request id of the stream.',
      answers: { 204: { description: 'The stream is ended.' } },
      refusals: [400, 404, 413, 415],
    },
    async (request) => {
      const { id } = request.params
      note(request, { target: `stream:${id.slice(0, 100)}` })
      return (await inspection.endStream(id)) ? answer(204, null, 'done') : notFound('No stream with this request id is open.')
    },
  )
  addOperation(
    {
      method: 'GET',
      url: '/budgets',
      id: 'showBudgets',
      action: 'budgets',
      summary: 'Shows what a user, a group or the users with one value of a claim have used of their token budgets.',
      query: BUDGETS_QUERY,
      answers: {
        200: {
          description: 'Each budget of the configuration and the policy that may apply.',
          schema: z.strictObject({ budgets: z.array(budgetSchema).readonly() }),
        },
      },
      refusals: [400],
    },
    async ({ query }) => {
      const question = budgetQuestion(query)
      if (question === null) return { ...refuse('query-encoding'), text: BUDGETS_FORM }
      return answer(200, { budgets: await inspection.budgets(question) })
    },
  )
  addOperation(
    {
      method: 'GET',
      url: '/configuration',
      id: 'showConfiguration',
      action: 'configuration',
      summary: 'Shows the active configuration as it was written, without secrets.',
      answers: { 200: { description: 'The configuration.', schema: configurationSchema } },
      refusals: [],
    },
    async () => answer(200, inspection.configuration()),
  )
  addOperation(
    {
      method: 'GET',
      url: '/policy',
      id: 'showPolicy',
      action: 'policy',
      summary: 'Shows who may use each route under the active policy.',
      answers: { 200: { description: 'The policy.', schema: policySchema } },
      refusals: [],
    },
    async () => answer(200, await inspection.policy()),
  )
  addOperation(
    {
      method: 'POST',
      url: '/explain',
      id: 'explain',
      action: 'explain',
      summary: 'Explains by the active policy how a request is decided. It sends nothing, and changes nothing.',
      body: questionForm,
      changes: false,
      // A line of the audit log, or the claims of a large token.
      bodyLimit: 64 * 1024,
      form: EXPLAIN_FORM,
      answers: { 200: { description: 'The explanation.', schema: explanationSchema } },
      refusals: [400, 404, 413, 415],
    },
    async (_request, read) => {
      const question = read()
      if (isRefusal(question)) return question
      const explained = await inspection.explain(question)
      if (explained === null) return notFound(NOT_RECENT)
      if ('fault' in explained) return wrong(explained.fault)
      return answer(200, explained)
    },
  )
}

function budgetQuestion(query: unknown): BudgetQuestion | null {
  const read = z.strictObject(BUDGETS_QUERY).safeParse(query)
  if (!read.success) return null
  const { user, group, claim, issuer, value } = read.data
  const given = Object.values(read.data).filter((one) => one !== undefined).length
  if (user !== undefined && given === 1) return { kind: 'user', user }
  if (group !== undefined && given === 1) return { kind: 'group', group }
  if (claim === undefined || issuer === undefined || value === undefined || given !== 3) return null
  return { kind: 'claim', at: claim, issuer, value }
}

const NOT_RECENT =
  'No recent decision has this request id. The gateway keeps the last 1000 of each process: threadwarden explain --request-id reads the audit log.'

function wrong(text: string): AdminRefusal {
  return { ...refuse('body-unexpected'), text }
}

interface Wanted {
  readonly route?: string | undefined
  readonly reason?: string | undefined
  readonly user?: string | undefined
  readonly thread?: string | undefined
}

function isWanted(decision: Decision, { route, reason, user, thread }: Wanted): boolean {
  return (
    (route === undefined || decision.route === route) &&
    (reason === undefined || decision.reason === reason || decision.decision === reason) &&
    (user === undefined || decision.principal?.id === user) &&
    (thread === undefined || decision.thread === thread)
  )
}
