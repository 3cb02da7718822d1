/** `threadwarden revoke`: refuses tokens before they expire, through the store that the gateways read. */
import { suggestion } from '../tools/import-export/suggestion.ts'
import type { Config } from '../config/schema.ts'
import type { Revocation } from '../core/decide/credential.ts'
import { faultLine } from '../document/fault.ts'
import { isTokenId, revocationOf, shown, timeOf, userFault } from '../operator/revocation-form.ts'
import { prepare } from '../snapshot/load.ts'
import type { RevocationStore, Revoked } from '../store/port.ts'
import { complain, EXIT, print, printData, readOptions, UsageError, type Command } from './command.ts'
import { withStore } from './with-store.ts'

type Task =
  | { readonly kind: 'list' }
  | { readonly kind: 'lift'; readonly what: Revoked }
  | { readonly kind: 'revoke'; readonly revocation: Revocation; readonly what: Revoked }

const OPTIONS = {
  config: { type: 'string' },
  'token-id': { type: 'string' },
  user: { type: 'string' },
  before: { type: 'string' },
  lift: { type: 'boolean' },
  list: { type: 'boolean' },
  json: { type: 'boolean' },
} as const

type Options = ReturnType<typeof readOptions<typeof OPTIONS>>

export const revoke: Command = {
  summary: 'refuses tokens before they expire',
  help: `threadwarden revoke --config FILE --token-id ID [--lift] [--json]
threadwarden revoke --config FILE --user USER [--before TIME] [--lift] [--json]
threadwarden revoke --config FILE --list [--json]

Revokes a token, or the tokens of a user, in the store that the configuration names. Gateways that run on the store refuse
them within a second; nothing has to be restarted.

  --config FILE    the configuration (YAML or JSON)
  --token-id ID    one token, by its jti
  --user USER      all tokens of a user, those to come as well: issuer:subject, as in the log
  --before TIME    only those issued before: 2026-01-31T12:00:00Z, or now: a new sign-in is good
                   once the clock tolerance of the issuer is over
  --lift           takes the revocation back
  --list           prints what is revoked
  --json           prints {"revoked"}, {"lifted"} or {"revocations"} on stdout

Exit codes: 0 done, 1 nothing to lift, an invalid configuration or a failing store, 2 wrong usage.`,

  async run(args) {
    const options = readOptions(args, OPTIONS)
    if (options.config === undefined) throw new UsageError('--config FILE is missing')
    const asked = taskOf(options, Date.now())
    const prepared = prepare(options.config, process.env)
    if (!prepared.ok) {
      for (const fault of prepared.faults) complain(`error: ${faultLine(fault)}`)
      return EXIT.failure
    }
    const { authentication } = prepared.value.config
    const task = options.before === 'now' ? withTolerance(asked, authentication) : asked
    if (task.kind === 'revoke' && 'userId' in task.what) requireIssuer(task.what.userId, Object.keys(authentication.issuers))
    if (authentication.mode === 'off') complain('warning: authentication.mode is off: no token is read, none is refused')
    // No gateway would read a store that this command made.
    return withStore(prepared.value, { make: false }, (store) => carryOut(task, store, options.json === true))
  },
}

/** The issuer's clock may be ahead: a token that it issued just now would seem to be issued after `now`. */
function withTolerance(task: Task, { issuers, clockTolerance }: Config['authentication']): Task {
  if (task.kind !== 'revoke' || task.revocation.kind !== 'user' || task.revocation.before === null) return task
  const issuer = issuers[task.revocation.userId.split(':', 1)[0] ?? '']
  const before = task.revocation.before + (issuer?.clockTolerance ?? clockTolerance)
  return { ...task, revocation: { ...task.revocation, before } }
}

/** @throws UsageError for options that make no sense together */
function taskOf(options: Options, now: number): Task {
  const { 'token-id': tokenId, user: userId, before, lift, list } = options
  if (list === true) {
    if (tokenId !== undefined || userId !== undefined || before !== undefined || lift === true)
      throw new UsageError('--list goes with --config and --json alone')
    return { kind: 'list' }
  }
  if ((tokenId === undefined) === (userId === undefined))
    throw new UsageError('name either --token-id ID or --user USER, or --list')
  if (before !== undefined && (lift === true || userId === undefined))
    throw new UsageError('--before TIME goes with --user USER alone')
  const revokedAt = now
  if (tokenId !== undefined) {
    if (!isTokenId(tokenId)) throw new UsageError('--token-id is the jti of a token: 1 to 1024 characters')
    const what = { tokenId }
    return lift === true ? { kind: 'lift', what } : { kind: 'revoke', what, revocation: { kind: 'token', tokenId, revokedAt } }
  }
  const what = { userId: userId ?? '' }
  if (userFault(what.userId, []) === 'form') throw new UsageError('--user is a user id: issuer:subject')
  if (lift === true) return { kind: 'lift', what }
  return { kind: 'revoke', what, revocation: { kind: 'user', ...what, before: timeBefore(before, now), revokedAt } }
}

function timeBefore(text: string | undefined, now: number): number | null {
  if (text === undefined) return null
  const time = text === 'now' ? now : timeOf(text)
  if (time === null) throw new UsageError('--before is a time with its zone, 2026-01-31T12:00:00Z, or now')
  return time
}

/** A revocation for an unknown issuer would have no effect. Lifting one is fine: the issuer may have been removed. */
function requireIssuer(userId: string, issuers: readonly string[]): void {
  const fault = userFault(userId, issuers)
  if (fault === null || fault === 'form') return
  if (issuers.length === 0) throw new UsageError('the configuration has no issuers, so there are no users')
  throw new UsageError(`the configuration has no issuer "${fault.issuer}": ${suggestion(fault.issuer, issuers)}`)
}

async function carryOut(task: Task, store: RevocationStore, json: boolean): Promise<number> {
  switch (task.kind) {
    case 'list': {
      const all = await store.revocations()
      if (json) printData({ revocations: all.map(shown) })
      else if (all.length === 0) print('nothing is revoked')
      else for (const one of all) print(line(one))
      return EXIT.fine
    }
    case 'lift': {
      const lifted = await store.lift(task.what)
      if (json) printData({ lifted }, 0)
      else if (lifted) print(`no longer revoked: ${'tokenId' in task.what ? `token ${task.what.tokenId}` : task.what.userId}`)
      else complain('nothing of the kind is revoked')
      return lifted ? EXIT.fine : EXIT.failure
    }
    case 'revoke': {
      await store.revoke(task.revocation)
      // A wider revocation may have existed before.
      const revocation = revocationOf(task.what, await store.revocations()) ?? task.revocation
      if (json) printData({ revoked: shown(revocation) })
      else print(`revoked: ${line(revocation)}`)
      return EXIT.fine
    }
  }
}

function line(revocation: Revocation): string {
  const one = shown(revocation)
  if ('tokenId' in one) return `token ${one.tokenId} (since ${one.revokedAt})`
  const which = one.before === null ? 'all tokens' : `tokens issued before ${one.before}`
  return `${which} of ${one.user} (since ${one.revokedAt})`
}
