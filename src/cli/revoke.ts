/** `threadwarden revoke`: refuses tokens before they expire, through the store that the gateways read. */
import { granteeFault } from '../tools/import-export/users.ts'
import type { Config } from '../config/schema.ts'
import type { Revocation } from '../core/decide/credential.ts'
import { isTokenId, revocationOf, shown, timeOf, userFault } from '../operator/revocation-form.ts'
import type { RevocationStore, Revoked } from '../store/port.ts'
import { CONFIG, defineCommand, EXIT, flag, jsonFlag, UsageError, value, type Values } from './command.ts'
import { complain, print, printData } from './terminal.ts'
import { loadConfig } from './input-files.ts'
import { withStore } from './with-store.ts'

type Task =
  | { readonly kind: 'list' }
  | { readonly kind: 'lift'; readonly what: Revoked }
  | { readonly kind: 'revoke'; readonly revocation: Revocation; readonly what: Revoked }

const OPTIONS = {
  config: CONFIG,
  'token-id': value('ID', 'one token, by its jti'),
  user: value('USER', 'all tokens of a user, future ones too: issuer:subject, as in the log'),
  before: value(
    'TIME',
    "only tokens issued before then: 2026-01-31T12:00:00Z, or now; a new sign-in works after the issuer's clock tolerance",
  ),
  lift: flag('removes the revocation'),
  list: flag('prints all revocations'),
  json: jsonFlag('{"revoked"}, {"lifted"} or {"revocations"}'),
} as const

type Options = Values<typeof OPTIONS>

export const command = defineCommand({
  usage: ['--token-id ID', '--user USER', '--list'],
  about: `Revokes a token, or the tokens of a user, in the store that the configuration names. Gateways on that store refuse them within
a second, without a restart.`,
  options: OPTIONS,
  exitCodes: ['done', 'nothing to lift, an invalid configuration or a failing store'],

  async run(values) {
    const asked = taskOf(values, Date.now())
    const prepared = loadConfig({ config: values.config })
    if (prepared === null) return EXIT.failure
    const { authentication } = prepared.config
    const task = values.before === 'now' ? withTolerance(asked, authentication) : asked
    const fault =
      task.kind === 'revoke' && 'userId' in task.what ? granteeFault(task.what.userId, Object.keys(authentication.issuers)) : null
    // A revocation for an unknown issuer would have no effect. Lifting one is fine: the issuer may have been removed.
    if (fault !== null) throw new UsageError(fault)
    if (authentication.mode === 'off') complain('warning: authentication.mode is off: no token is read, none is refused')
    return withStore(prepared, { make: false }, (store) => carryOut(task, store, values))
  },
})

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
  if (list) {
    if (tokenId !== undefined || userId !== undefined || before !== undefined || lift)
      throw new UsageError('--list goes with --config and --json alone')
    return { kind: 'list' }
  }
  if ((tokenId === undefined) === (userId === undefined))
    throw new UsageError('name either --token-id ID or --user USER, or --list')
  if (before !== undefined && (lift || userId === undefined)) throw new UsageError('--before TIME goes with --user USER alone')
  const revokedAt = now
  if (tokenId !== undefined) {
    if (!isTokenId(tokenId)) throw new UsageError('--token-id is the jti of a token: 1 to 1024 characters')
    const what = { tokenId }
    return lift ? { kind: 'lift', what } : { kind: 'revoke', what, revocation: { kind: 'token', tokenId, revokedAt } }
  }
  const what = { userId: userId ?? '' }
  if (userFault(what.userId, []) === 'form') throw new UsageError('--user is a user id: issuer:subject')
  if (lift) return { kind: 'lift', what }
  return { kind: 'revoke', what, revocation: { kind: 'user', ...what, before: timeBefore(before, now), revokedAt } }
}

function timeBefore(text: string | undefined, now: number): number | null {
  if (text === undefined) return null
  const time = text === 'now' ? now : timeOf(text)
  if (time === null) throw new UsageError('--before is a time with its zone, 2026-01-31T12:00:00Z, or now')
  return time
}

async function carryOut(task: Task, store: RevocationStore, { json }: Options): Promise<number> {
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
