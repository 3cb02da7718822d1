/**
 * Rules of the gateway that can be taken out one at a time, to see that the tests notice (scripts/removed-rules.ts). They are spread
 * over all folders of src/.
 */

export interface RemovableRule {
  readonly rule: string
  /** Below src/. */
  readonly file: string
  /** Occurs in the file once. */
  readonly present: string
  readonly removed: string
  /** Tests that are likely to notice: a glob from the root. They run first, which saves time and decides nothing. */
  readonly first: string
}

/** A condition that is never true, which a compiler and a linter let pass. */
const NEVER = 'Number.isNaN(0)'

function never(condition: string, end: string): { readonly present: string; readonly removed: string } {
  return { present: `if (${condition}) ${end}`, removed: `if (${NEVER}) ${end}` }
}

export const RULES: readonly RemovableRule[] = [
  // audit
  {
    rule: 'a request that is no HTTP counts among the decisions',
    file: 'audit/recorder.ts',
    present: "metrics.decided('none', refusal.reason)",
    removed: '',
    first: 'test/http/audit.test.ts',
  },
  {
    rule: 'a line of the audit says that the owner deleted the thread',
    file: 'audit/line.ts',
    ...never('record.deleted', 'return `${whose}-deleted`'),
    first: 'test/core/audit-line.test.ts',
  },
  {
    rule: 'the recent decisions have no content of answers to interrupts',
    file: 'audit/recent.ts',
    present: 'descriptor.answers?.map(({ id, answer }) => ({ id, answer }))',
    removed: 'descriptor.answers',
    first: 'test/http/interrupts.test.ts',
  },
  // auth
  {
    rule: 'a token is for one of the audiences',
    file: 'auth/claim-rules.ts',
    ...never('!audienceFits(config, claims)', "return refuse('audience-mismatch')"),
    first: 'test/auth/*.test.ts',
  },
  {
    rule: 'a token is no older than maxTokenAge',
    file: 'auth/claim-rules.ts',
    ...never('now - issuedAt > maxTokenAge + tolerance', "return refuse('token-too-old')"),
    first: 'test/auth/*.test.ts',
  },
  {
    rule: 'an opaque token is active',
    file: 'auth/introspection.ts',
    ...never("claims['active'] !== true", "return refuse('token-inactive')"),
    first: 'test/auth/*.test.ts',
  },
  {
    rule: 'a credential cookie counts only from a trusted page',
    file: 'auth/request-credentials.ts',
    ...never('!isFromTrustedPage(method, lines)', "return refuse('cookie-cross-site')"),
    first: 'test/security/cookie-sessions.test.ts',
  },
  {
    rule: 'header and cookie are of one user',
    file: 'auth/request-credentials.ts',
    present: "header.principal.id === cookie.principal.id ? header : refuse('credentials-differ')",
    removed: 'header',
    first: 'test/security/cookie-sessions.test.ts',
  },
  // cli
  {
    rule: '--method is an HTTP method',
    file: 'cli/explain.ts',
    present: 'if (!/^[A-Z]{1,20}$/i.test(method)) throw',
    removed: `if (${NEVER}) throw`,
    first: 'test/cli/explain*.test.ts',
  },
  {
    rule: 'a file that a command reads is within a bound',
    file: 'cli/input-files.ts',
    present: 'if (bytes === null || bytes.length > limit) throw',
    removed: 'if (bytes === null) throw',
    first: 'test/cli/input-files.test.ts',
  },
  // config
  {
    rule: 'a store URL names one database',
    file: 'config/store-place.ts',
    present: "if (database === '' || url.pathname.includes('/', 1)) return",
    removed: `if (${NEVER}) return`,
    first: 'test/config/store.test.ts',
  },
  // core
  {
    rule: 'a target does not say one thing in two ways (percent-encoding)',
    file: 'core/route/target.ts',
    present: "if (encodeURIComponent(decoded).replaceAll('%3A', ':') !== raw.replaceAll('%3A', ':')) return",
    removed: `if (${NEVER}) return`,
    first: 'test/core/target*.test.ts',
  },
  {
    rule: 'no segment of a target is . or ..',
    file: 'core/route/target.ts',
    ...never("decoded === '.' || decoded === '..'", "return refuse('target-dot-segment')"),
    first: 'test/core/target*.test.ts',
  },
  {
    rule: 'no TLS session is resumed where clients have certificates',
    file: 'tls/material.ts',
    present: '(ca === undefined ? 0 : SSL_OP_NO_TICKET)',
    removed: 'Number(Number.isNaN(ca) && SSL_OP_NO_TICKET)',
    first: 'test/http/tls.test.ts',
  },
  {
    rule: 'a certificate and its key belong together',
    file: 'tls/certificates.ts',
    present: 'if (leaf.checkPrivateKey(privateKey)) return',
    removed: 'if (!Number.isNaN(0)) return',
    first: 'test/tls/certificates.test.ts',
  },
  {
    rule: 'a rule says whether a run may answer interrupts',
    file: 'core/decide/decide.ts',
    present: "if (rule.passes.interrupts === 'pass') return decision",
    removed: 'if (!Number.isNaN(0)) return decision',
    first: 'test/core/interrupt-answers.test.ts',
  },
  {
    rule: 'null in command.resume is an answer',
    file: 'core/route/interrupt-answers.ts',
    present: "(foldedName(key) === 'resume' ?",
    removed: "(foldedName(key) === 'resume' && value !== null ?",
    first: 'test/core/interrupt-answers.test.ts',
  },
  {
    rule: 'no answer to an interrupt is missing from the audit',
    file: 'core/route/bodies.ts',
    present: "if (answers === 'too-many') return refuse('interrupt-answers-too-many')",
    removed: "if (answers === 'too-many') return { outcome: 'checked', descriptor: about }",
    first: 'test/core/interrupt-answers.test.ts',
  },
  {
    rule: 'a thread id in a body has the form of an id',
    file: 'core/route/bodies.ts',
    ...never('!isThreadId(threadId)', "return refuse('thread-id-invalid')"),
    first: 'test/core/*.test.ts',
  },
  {
    rule: 'no key of a body is __proto__',
    file: 'core/json/read.ts',
    ...never("key === '__proto__'", "return refuse('body-key-forbidden')"),
    first: 'test/core/json*.test.ts',
  },
  {
    rule: 'no string of a large body has a control character',
    file: 'core/json/read.ts',
    present: '      look()\n      const { asWritten } = shape',
    removed: '      const { asWritten } = shape',
    first: 'test/core/control-characters.test.ts',
  },
  {
    rule: 'a body is no deeper than its bound',
    file: 'core/json/read.ts',
    ...never('depth > MAX_DEPTH', "return refuse('body-too-deep')"),
    first: 'test/core/json*.test.ts',
  },
  {
    rule: 'there is one Authorization header',
    file: 'core/wire/headers.ts',
    present: "if (lines.get('authorization')?.join(',').includes(',')) return",
    removed: `if (${NEVER}) return`,
    first: 'test/core/headers*.test.ts',
  },
  {
    rule: 'a key inside a run that AG-UI does not have is dropped',
    file: 'core/route/closed-keys.ts',
    present: 'if (known === undefined) changesOf(own)',
    removed: 'if (known === undefined) continue',
    first: 'test/core/closed-keys.test.ts',
  },
  {
    rule: 'an object in the place of a text is emptied',
    file: 'core/route/closed-keys.ts',
    present: "else changesOf(own).set(key, 'emptied')",
    removed: 'else continue',
    first: 'test/core/closed-keys.test.ts',
  },
  {
    rule: 'a list in a list of objects is emptied',
    file: 'core/route/closed-keys.ts',
    present: 'else if (isContainer(item) && !isEmpty(item)) {',
    removed: `else if (${NEVER}) {`,
    first: 'test/core/closed-keys.test.ts',
  },
  {
    rule: 'a message of an unknown role has only its id and role',
    file: 'core/route/closed-keys.ts',
    present: '?? rule.unknown',
    removed: '?? [...rule.variants.values()].at(-1)!',
    first: 'test/core/closed-keys.test.ts',
  },
  {
    rule: 'the body of a run is closed',
    file: 'core/route/bodies.ts',
    ...never('rule !== undefined', 'passes = yield* closeKeys(passes, rule.value, key, droppedInside)'),
    first: 'test/core/bodies.test.ts',
  },
  {
    rule: 'a policy says which roles messages may have',
    file: 'core/route/message-rules.ts',
    present: "if (typeof role !== 'string' || !rules.roles.has(role)) {",
    removed: `if (${NEVER}) {`,
    first: 'test/core/message-rules.test.ts',
  },
  {
    rule: 'a content part has one of the URL schemes of the policy',
    file: 'core/route/message-rules.ts',
    present: 'return used.length > 0 && used.every((scheme) => scheme !== null && schemes.has(scheme))',
    removed: 'return used.length >= 0 && schemes.size >= 0',
    first: 'test/core/message-rules.test.ts',
  },
  {
    rule: 'a message with the id of another one is the same message',
    file: 'core/route/claimed-history.ts',
    present: 'if (isSame(message, same)) continue',
    removed: 'if (message !== same) continue',
    first: 'test/core/claimed-history.test.ts',
  },
  {
    rule: 'a run with a forged history is refused',
    file: 'http/pipeline/authorization.ts',
    present: 'if (forged !== null) return { ...forged, rule: permit.rule }',
    removed: '',
    first: 'test/security/messages.test.ts',
  },
  {
    rule: 'tools in the state are closed',
    file: 'core/route/bodies.ts',
    present: 'tools: yield* closeKeys(tools, TOOLS_IN_STATE, TOOLS_IN_STATE.name, droppedInside)',
    removed: 'tools',
    first: 'test/core/bodies.test.ts',
  },
  {
    rule: 'an envelope calls only what single-route clients may call',
    file: 'core/route/envelope.ts',
    ...never("envelopeOf(descriptor.route) !== 'tunnel'", "return refuse('route-unknown')"),
    first: 'test/core/envelope*.test.ts',
  },
  // document
  {
    rule: 'an empty file is refused with what to write',
    file: 'document/document.ts',
    present:
      "if (document.value === null) return { ok: false, faults: [faultAt(document, [], 'is empty', 'begin it with version: 1')] }",
    removed: '',
    first: 'test/config/unreadable.test.ts',
  },
  // gateway
  {
    rule: 'a stream beyond the limit is refused to a worker',
    file: 'gateway/workers/limiter.ts',
    ...never("typeof opened !== 'function'", 'return opened'),
    first: 'test/limits/*.test.ts',
  },
  {
    rule: 'stale keys of an issuer are reported once',
    file: 'gateway/operator-notices.ts',
    ...never('keys.stale() === stale.has(key)', 'continue'),
    first: 'test/auth/*.test.ts',
  },
  // http
  {
    rule: 'a revoked token is refused',
    file: 'http/pipeline/authentication.ts',
    ...never('isRevoked(principal.id, credential)', "return refuse('token-revoked')"),
    first: 'test/security/revo*.test.ts',
  },
  {
    rule: 'a body within its configured bound is sent only within the bound of its rule',
    file: 'http/pipeline/payload.ts',
    ...never('hold.bytes > most', "return refuse('body-too-large')"),
    first: 'test/http/*bod*.test.ts',
  },
  {
    rule: 'an open stream keeps nothing of its body',
    file: 'http/upstream/upstream.ts',
    present: '|| mayBegin?.() === false',
    removed: '|| request.mayBegin?.() === false',
    first: 'test/http/stream-memory.test.ts',
  },
  {
    rule: 'an answer is not begun once its access ended',
    file: 'http/upstream/forward.ts',
    present: 'return late ?? (owner.permit === undefined ? null : exchange.snapshot.refusal(owner.permit, permittedAt))',
    removed: 'return null',
    first: 'test/security/answers-after-access.test.ts',
  },
  {
    rule: 'rules that changed while a list was read refuse it',
    file: 'http/lists/thread-list.ts',
    ...never('still?.length !== page.threads.length', "return refuse('rules-changed')"),
    first: 'test/security/answers-after-access.test.ts',
  },
  {
    rule: 'no page of a browser reaches the operator API',
    file: 'http/admin/admin.ts',
    ...never('request.headers.origin !== undefined', "return refuse('origin-not-listed')"),
    first: 'test/http/admin*.test.ts',
  },
  {
    rule: 'a page of another origin does nothing with the session of an operator',
    file: 'http/admin/console/console.ts',
    ...never('!own.isOwnHost(request) || !own.isOwnPage(request)', 'return null'),
    first: 'test/http/console.test.ts',
  },
  {
    rule: 'a sign-in begins a session with a new id',
    file: 'http/admin/console/sessions.ts',
    present: "const id = randomBytes(32).toString('base64url')",
    removed: "const id = idOf(request) === '' ? randomBytes(32).toString('base64url') : idOf(request)",
    first: 'test/http/console.test.ts',
  },
  {
    rule: 'a viewer changes nothing',
    file: 'http/admin/console/console.ts',
    present: "return operator.role === 'viewer' && changes ? refuse('operator-only') : operator",
    removed: "return changes === null ? refuse('operator-only') : operator",
    first: 'test/http/console.test.ts',
  },
  // jwt
  {
    rule: 'keys are not asked for again during the pause',
    file: 'jwt/key-source.ts',
    ...never('pause > 0 && pause <= COOL_DOWN_MS', 'return Promise.resolve()'),
    first: 'test/auth/*.test.ts',
  },
  {
    rule: 'the metadata of an issuer name that issuer',
    file: 'jwt/key-source.ts',
    present: "if (metadata['issuer'] !== issuer)\n",
    removed: `if (${NEVER})\n`,
    first: 'test/auth/*.test.ts',
  },
  // limits
  {
    rule: 'replicas count together where the store is PostgreSQL',
    file: 'limits/open.ts',
    present: "if (named.kind !== 'postgres' || pool === null) return",
    removed: "if (named.kind !== 'none') return",
    first: 'test/limits/*.test.ts',
  },
  // observe
  {
    rule: 'a request has a line in the log',
    file: 'observe/log.ts',
    present: 'if (!log.isLevelEnabled(level)) return',
    removed: "if (!log.isLevelEnabled('off')) return",
    first: 'test/http/log.test.ts',
  },
  // operator
  {
    rule: 'a grant is for a user or for a group, and has no other key',
    file: 'operator/grant-form.ts',
    present: 'const isOne = ({ user, group }: GranteeKeys): boolean => (user === undefined) !== (group === undefined)',
    removed: 'const isOne = ({ user, group }: GranteeKeys): boolean => user !== null || group !== null',
    first: 'test/http/grants*.test.ts',
  },
  // policy
  {
    rule: 'no warning is given of an agent id that a request can have',
    file: 'policy/warnings.ts',
    ...never('isAgentId(id)', 'continue'),
    first: 'test/policy/*.test.ts',
  },
  {
    rule: 'a policy with faults is not put in force',
    file: 'policy/compile.ts',
    ...never('faults.length > 0', 'return { ok: false, faults }'),
    first: 'test/policy/*.test.ts',
  },
  // postgres
  {
    rule: 'tls: off asks for no TLS',
    file: 'postgres/connecting.ts',
    ...never("tls === 'off'", 'return false'),
    first: 'test/postgres/*.test.ts',
  },
  // sdk
  {
    rule: 'an application that asks for a role gets an error from a user without it',
    file: 'sdk/agent/user.ts',
    present: "throw new PermissionDenied(user.user_id, 'role', role)",
    removed: '',
    first: 'test/agent/*.test.ts',
  },
  {
    rule: 'a verified assertion has not expired',
    file: 'sdk/agent/token.ts',
    ...never('isExpired', "throw new NotAuthenticated('credential-expired', 'token-expired')"),
    first: 'test/agent/*.test.ts',
  },
  // snapshot
  {
    rule: 'a permit ends where its upstream has another scope',
    file: 'snapshot/snapshot.ts',
    present: '|| mount.scope !== before.scope)',
    removed: ')',
    first: 'test/reload/*.test.ts',
  },
  // store
  {
    rule: 'a thread belongs to one user (SQLite)',
    file: 'store/sqlite/ownership.ts',
    present: "if (owner !== userId || (guest && deletedAt !== null)) return { outcome: 'foreign' }",
    removed: "if (guest && deletedAt !== null) return { outcome: 'foreign' }",
    first: 'test/store/sqlite.test.ts',
  },
  {
    rule: 'a thread belongs to one user (PostgreSQL)',
    file: 'store/postgres/ownership.ts',
    present: "if (row === undefined ? guest : row.owner !== userId || (guest && row.deleted)) return { outcome: 'foreign' }",
    removed: "if (row === undefined ? guest : guest && row.deleted) return { outcome: 'foreign' }",
    first: 'test/store/postgres.test.ts',
  },
  {
    rule: 'only an owner shares a thread',
    file: 'store/sql/grants.ts',
    present: "if (!isOwnedBy(row, user)) return 'not-owner'\n        const values",
    removed: 'const values',
    first: 'test/store/sqlite.test.ts',
  },
  {
    rule: 'a store of a later version is not opened',
    file: 'store/sqlite/schema.ts',
    ...never('latest > SCHEMA_VERSION', 'throw newer(latest)'),
    first: 'test/store/sqlite-migration.test.ts',
  },
  // langgraph
  {
    rule: 'a checkpoint names only the thread of its request',
    file: 'core/route/langgraph-bodies.ts',
    present: 'if (refusal !== null) return refusal',
    removed: '',
    first: 'test/langgraph/attacks.test.ts',
  },
  {
    rule: 'a LangGraph run names its assistant',
    file: 'core/route/langgraph-bodies.ts',
    present: "if (!isAgentId(agentId)) return refuse('agent-id-invalid')",
    removed: '',
    first: 'test/langgraph/attacks.test.ts',
  },
  {
    rule: 'a new LangGraph thread has a canonical id',
    file: 'core/route/langgraph-bodies.ts',
    present: "if (!isThreadId(threadId)) return refuse('thread-id-invalid')",
    removed: '',
    first: 'test/langgraph/attacks.test.ts',
  },
  {
    rule: 'a run sets only the options that its policy names',
    file: 'core/route/langgraph-bodies.ts',
    ...never('isOption(key) && !rules.options.has(key)', '{'),
    first: 'test/langgraph/attacks.test.ts',
  },
  {
    rule: 'a run gives only the commands that its policy names',
    file: 'core/route/langgraph-bodies.ts',
    present: "named.every(([key]) => command.has(key)) ? passes(part) : refuse('command-not-allowed')",
    removed: 'passes(part)',
    first: 'test/langgraph/attacks.test.ts',
  },
  {
    rule: 'the input of a LangGraph run is no command',
    file: 'core/route/langgraph-bodies.ts',
    ...never('actsAsCommand(whole)', "return refuse('command-not-allowed')"),
    first: 'test/langgraph/attacks.test.ts',
  },
  {
    rule: 'config.configurable has only names of the policy',
    file: 'core/route/langgraph-bodies.ts',
    present: 'Object.keys(own).every((name) => configurable.has(name) && !isReservedConfigurable(name))',
    removed: 'true',
    first: 'test/langgraph/attacks.test.ts',
  },
  {
    rule: 'metadata names no thread, run, assistant or user',
    file: 'core/route/langgraph-bodies.ts',
    present: '!(IDS_IN_METADATA.has(name) ||',
    removed: '!(Number.isNaN(0) ||',
    first: 'test/langgraph/attacks.test.ts',
  },
  {
    rule: 'a new value for the channel of the messages is no message',
    file: 'core/route/langgraph-bodies.ts',
    present: '!isObject(message) || isMarked(message)',
    removed: '!isObject(message)',
    first: 'test/langgraph/attacks.test.ts',
  },
  {
    rule: 'a role beside a serialised message counts',
    file: 'core/route/langgraph-bodies.ts',
    present: "type === 'constructor' ? null : type, role]",
    removed: 'null]',
    first: 'test/langgraph/attacks.test.ts',
  },
  {
    rule: 'the server refuses an id that it has for a new thread',
    file: 'core/route/langgraph-bodies.ts',
    present: "body['if_exists'] = 'raise'",
    removed: '',
    first: 'test/langgraph/ownership.test.ts',
  },
  {
    rule: 'a thread whose steps are refused is kept',
    file: 'core/route/langgraph-bodies.ts',
    present: "(value['supersteps'] ?? null) !== null",
    removed: 'Number.isNaN(0)',
    first: 'test/langgraph/ownership.test.ts',
  },
  {
    rule: 'a run is of the thread of its request',
    file: 'http/langgraph/run-of-thread.ts',
    present: "run['thread_id'] === threadId && run['run_id'] === runId ? null : refuse('run-unknown')",
    removed: 'null',
    first: 'test/langgraph/attacks.test.ts',
  },
  {
    rule: 'no search is sent for no threads',
    file: 'http/langgraph/search.ts',
    present: 'if (ids.length === 0) return { ...written([])',
    removed: 'if (Number.isNaN(0)) return { ...written([])',
    first: 'test/langgraph/attacks.test.ts',
  },
  {
    rule: 'a search has only the ids that its caller asks for',
    file: 'http/langgraph/search.ts',
    present: '(asked === null || asked.has(id))',
    removed: 'true',
    first: 'test/langgraph/attacks.test.ts',
  },
  {
    rule: 'a search has only UUIDs',
    file: 'http/langgraph/search.ts',
    present: 'isUuid(id) && ',
    removed: '',
    first: 'test/langgraph/ownership.test.ts',
  },
  {
    rule: 'an answer with other threads than the search names is no answer',
    file: 'http/langgraph/search.ts',
    present: "isObject(one) && allowed.has(one['thread_id'] as string)",
    removed: 'isObject(one)',
    first: 'test/langgraph/attacks.test.ts',
  },
  {
    rule: 'a search of another form of ids is refused',
    file: 'http/langgraph/search.ts',
    present: "return isList && typeof offset === 'number' ? query : null",
    removed: 'return query',
    first: 'test/langgraph/attacks.test.ts',
  },
  {
    rule: 'a copy whose access has ended is not told',
    file: 'http/langgraph/copy.ts',
    ...never('isRefusal(late)', 'return late'),
    first: 'test/langgraph/ownership.test.ts',
  },
  {
    rule: 'a copy has a canonical id',
    file: 'http/langgraph/copy.ts',
    present: '!isThreadId(threadId) || threadId ===',
    removed: 'threadId ===',
    first: 'test/langgraph/ownership.test.ts',
  },
  {
    rule: 'a copy under an id in use is refused',
    file: 'http/langgraph/copy.ts',
    present: "claim.outcome !== 'new' || claim.registration === null",
    removed: 'claim.registration === null',
    first: 'test/langgraph/ownership.test.ts',
  },
  {
    rule: 'under observe no copy becomes its caller’s',
    file: 'http/langgraph/copy.ts',
    present: "facts.enforcement === 'observe' ||",
    removed: 'Number.isNaN(0) ||',
    first: 'test/langgraph/ownership.test.ts',
  },
  {
    rule: 'the server is asked about a thread that a caller names',
    file: 'core/decide/decide.ts',
    present: 'if (descriptor.isNamedHere === true) return',
    removed: "if (unknownThread === 'create') return",
    first: 'test/langgraph/ownership.test.ts',
  },
  {
    rule: 'a run in the background is executing after its answer',
    file: 'http/upstream/forward.ts',
    present: ' && !answersEarly',
    removed: '',
    first: 'test/langgraph/ownership.test.ts',
  },
  {
    rule: 'each identity header reaches a LangGraph server',
    file: 'http/pipeline/identity.ts',
    present: "else if (isWhole) headers[name] = ''",
    removed: '',
    first: 'test/langgraph/ownership.test.ts',
  },
  {
    rule: 'no closed route of a LangGraph server is forwarded',
    file: 'core/route/classify.ts',
    present: "if (api === 'langgraph' && isClosed(method, segments)) return refuse('route-closed')",
    removed: '',
    first: 'test/langgraph/attacks.test.ts',
  },
  // tools
  {
    rule: 'an import that would change an owner is a conflict',
    file: 'tools/import-export/takeover.ts',
    ...never('there === null || !isAsImported(there, row)', "return { outcome: 'conflict', with: 'alive', users: [row.owner] }"),
    first: 'test/{import-export,store,cli}/*.test.ts',
  },
  {
    rule: 'the doctor sees requests without a token that are not refused',
    file: 'tools/doctor/gateway.ts',
    ...never('wrong.length === 0', "return ok('requests without a token get 401')"),
    first: 'test/doctor/*.test.ts',
  },
]

/**
 * @param text of the rule's file
 * @returns the text without the rule
 * @throws Error if the text does not contain the rule exactly once
 */
export function withoutRule(text: string, { file, present, removed }: RemovableRule): string {
  if (text.split(present).length !== 2) throw new Error(`${file} must contain this once: ${present}`)
  return text.replace(present, () => removed)
}
