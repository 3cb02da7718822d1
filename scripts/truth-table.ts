/** Writes docs/reference/default-policy.md from what the default policy decides, or with --check says whether it still fits. */
import { readFileSync, writeFileSync } from 'node:fs'
import type { RouteDescriptor } from '../src/core/route/classify.ts'
import { decide, type OwnerRecord } from '../src/core/decide/decide.ts'
import { ANONYMOUS, EVERYBODY, type Principal, type User } from '../src/core/decide/principal.ts'
import { CODES } from '../src/core/reasons.ts'
import { ALL_ROUTES } from '../src/core/route/routes.ts'
import type { Rules } from '../src/core/decide/rules.ts'
import { faultLine } from '../src/document/fault.ts'
import { loadPolicy } from '../src/policy/compile.ts'
import { Sources } from '../src/document/sources.ts'
import { SHIPPED_POLICY } from '../src/snapshot/load.ts'

const PAGE = new URL('../docs/reference/default-policy.md', import.meta.url)

function user(subject: string, roles: readonly string[]): User {
  const more = { name: undefined, permissions: [], groups: [], claims: {} }
  return { kind: 'user', id: `corp:${subject}`, issuer: 'corp', subject, roles, ...more }
}

/** The columns. */
const CALLERS: Readonly<Record<string, Principal>> = {
  Anonymous: ANONYMOUS,
  'Mode off': EVERYBODY,
  'Signed in': user('alice', []),
  Operator: user('olga', ['operator']),
}

/** What a thread is to a caller, and its row in the table of owners. */
const THREADS: Readonly<Record<string, (caller: Principal) => OwnerRecord>> = {
  own: ({ id }) => ({ owner: id, deleted: false }),
  'shared for reading': () => ({ owner: 'corp:bob', deleted: false, granted: 'read' }),
  'shared for writing': () => ({ owner: 'corp:bob', deleted: false, granted: 'write' }),
  unknown: () => null,
  "another's": () => ({ owner: 'corp:bob', deleted: false }),
  'deleted by another': () => ({ owner: 'corp:bob', deleted: true }),
}

const HEAD = `<!-- Written by scripts/truth-table.ts from policies/default.yaml: change that, and run npm run truth. -->

# The default policy

What the gateway decides by [policies/default.yaml](../../policies/default.yaml), for every route. [The policy reference](policy.md) explains the rules.

- **Anonymous**: no \`Authorization\` header, with \`authentication.mode: optional\`. With \`required\` it is 401.
- **Mode off**: everybody, with \`authentication.mode: off\`.
- **Signed in**: a good token. **Operator**: one whom \`operators\` selects.
- **own**: the caller's thread. **shared**: somebody else's, which was granted to the caller for reading or for writing; nothing can be granted to callers who are anonymous. **unknown**: nobody's, or one that the caller has deleted; with \`ownership.unknownThread: claim\`.
- **yes**: it goes to the upstream, or for grants the gateway answers. **claims**: it does, and the thread is the caller's from then on. **empty**: the gateway answers what a new thread would get.
- A list (\`threads/list\`) holds the threads whose messages the caller may read.
`

/** In place of the caller's id. */
const SELF = ''

/** Every request, as the table names it. A body that archives is a request of its own, and so is one that names the caller. */
const REQUESTS: readonly (readonly [name: string, descriptor: RouteDescriptor])[] = ALL_ROUTES.flatMap((route) => {
  const ids = { agentId: 'default', threadId: 'thread-1', memoryId: 'memory-1' }
  const descriptor = { outcome: 'classified', route, ids, query: [] } as const
  const name = `\`${route.method} ${route.path.join('/')}\``
  const archives = route.body.kind === 'json' && route.body.keys.includes('archived')
  if (route.leave === true)
    return [
      [name, descriptor],
      [`${name} of the caller's own`, { ...descriptor, leaver: SELF }],
    ]
  return [[name, descriptor], ...(archives ? [[`${name} with \`archived\``, { ...descriptor, ownerOnly: true }] as const] : [])]
})

/** What a caller is told, in a cell. */
function told(rules: Rules, descriptor: RouteDescriptor, caller: Principal, record: OwnerRecord, userScoped: boolean): string {
  const facts = { userScoped, unknownThread: 'claim', enforcement: 'enforce', record } as const
  const about = descriptor.leaver === SELF ? { ...descriptor, leaver: caller.id } : descriptor
  const decision = decide(about, caller, rules, facts)
  if (decision.outcome === 'needs') throw new Error(`${descriptor.route.id} waits for ${decision.fact}`)
  if (decision.outcome === 'refused') return `${CODES[decision.code].status} \`${decision.code}\``
  if (decision.answerEmpty) return 'empty'
  return decision.claim && record === null ? 'claims' : 'yes'
}

function rowsOf(rules: Rules, userScoped: boolean): readonly (readonly string[])[] {
  return REQUESTS.flatMap(([request, descriptor]) => {
    const { route } = descriptor
    const threads = route.thread === undefined ? { '–': THREADS['unknown'] } : THREADS
    const answers = Map.groupBy(Object.entries(threads), ([, recordFor]) =>
      Object.values(CALLERS)
        .map((caller) => told(rules, descriptor, caller, recordFor?.(caller) ?? null, userScoped))
        .join(' | '),
    )
    return Array.from(answers, ([told, alike]) => [`\`${route.id}\``, request, alike.map(([thread]) => thread).join(', '), told])
  })
}

function table(rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const head = ['Route', 'Request', 'Thread', ...Object.keys(CALLERS)]
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

const loaded = loadPolicy(new Sources(), SHIPPED_POLICY, { issuers: ['corp'] })
if (!loaded.ok) throw new Error(loaded.faults.map(faultLine).join('\n'))
const { rules } = loaded.value.policy
const plain = rowsOf(rules, false)
const before = new Set(plain.map((row) => row.join()))
const scoped = rowsOf(rules, true).filter((row) => !before.has(row.join()))
const text = `${HEAD}
${table(plain)}

## Before a user-scoped upstream

With \`upstream.userScoped: true\` these are otherwise:

${table(scoped)}
`

if (!process.argv.includes('--check')) writeFileSync(PAGE, text)
else if (readFileSync(PAGE, 'utf8') !== text) {
  process.stderr.write('docs/reference/default-policy.md does not fit policies/default.yaml: run npm run truth\n')
  process.exitCode = 1
}
