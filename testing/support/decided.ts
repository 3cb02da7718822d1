/** Adds to each failing assertion the requests and commands before it: a difference alone names no request, rule or command. */
import type { Extra, Test } from 'tap'
import type { TestGateway } from './gateway.ts'

/** Tests send one request after the other, or a few at once. */
const SHOWN = 3
/** The runner of the suites prints 30 lines of a failure. */
const MOST_CHARACTERS = 600

/** A test; or the scope of a script, which has no assertions. */
export type Asserting = Partial<Pick<Test, 'fail'>>

/** What an assertion is given; a test with two gateways adds the requests to each. */
interface Said {
  readonly requests?: readonly string[]
  readonly commands?: readonly CommandText[]
}

/** Prints with a failing assertion of a test. */
function addOnFailure(t: Asserting, add: (given: Said) => Said): void {
  if (t.fail === undefined) return
  // Every assertion that fails ends here; what it is given besides is printed with the difference.
  const fail = t.fail.bind(t)
  t.fail = (...[message, extra]) => {
    const [text, given]: [string, Extra & Said] =
      typeof message === 'object' ? ['failed', message] : [message ?? 'failed', extra ?? {}]
    return fail(text, { ...given, ...add(given) })
  }
}

type Line = Readonly<Record<string, unknown>>

/** A gateway in the test process; or one in a process of its own, of which the log alone is known. */
interface Deciding {
  readonly lines: readonly Line[]
  readonly asked?: TestGateway['asked']
}

/** Adds to each failing assertion the last requests that a gateway has decided since this call, and by which rules. */
export function sayOnFailure(t: Asserting, { lines, asked = new Map() }: Deciding): void {
  // Tests may share a gateway. A test may also empty the log: then every line is its own.
  const before = lines.at(-1)
  addOnFailure(t, ({ requests = [] }) => {
    const since = lines.slice(before === undefined ? 0 : lines.indexOf(before) + 1)
    const own = since.filter(({ msg }) => msg === 'request').slice(-SHOWN)
    return { requests: [...requests, ...own.map((line) => textOf(line, asked))] }
  })
}

/** `GET /api/copilotkit/threads/t1/state (threads/state, thread t1) as corp:bob: 404, thread-foreign` */
function textOf(line: Line, asked: TestGateway['asked']): string {
  const { requestId = '', method, route, thread, principal, status, reason, rule } = line as Partial<Record<string, string>>
  const about = thread === undefined ? route : `${route}, thread ${thread}`
  const by = rule === undefined ? '' : ` by the rule "${rule}"`
  return `${asked.get(requestId) ?? method} (${about}) as ${principal ?? 'nobody'}: ${status}, ${reason}${by}`
}

/** What a command left behind. */
export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

type CommandText = Ended & { readonly command: string }

/** The commands of each test so far. */
const commands = new WeakMap<Asserting, CommandText[]>()

/** Adds a command that has ended to each failing assertion that follows. */
export function sayCommandOnFailure(t: Asserting, args: readonly string[], { code, stdout, stderr }: Ended): void {
  const known = commands.get(t)
  const own = known ?? []
  own.push({ command: ['threadwarden', ...args].join(' '), code, stdout: shortened(stdout), stderr: shortened(stderr) })
  if (known !== undefined) return
  commands.set(t, own)
  addOnFailure(t, () => ({ commands: own.slice(-SHOWN) }))
}

function shortened(text: string): string {
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}… and ${text.length - MOST_CHARACTERS} more` : text
}
