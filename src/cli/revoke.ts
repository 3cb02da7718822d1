/** `threadwarden revoke`: refuses tokens before they expire, through the store that the gateways read. */
import { granteeFault } from '../tools/import-export/users.ts'
import type { Revocation } from '../core/decide/credential.ts'
import { isTokenId, revocationOf, shown, timeOf, userFault } from '../operator/revocation-form.ts'
import type { Revoked } from '../store/port/revocations.ts'
import { CONFIG, defineCommand, EXIT, flag, jsonFlag, UsageError, value, type Values } from './command.ts'
import { complain, print, printData } from './terminal.ts'
import { loadConfig } from './input-files.ts'
import { withStore } from './with-store.ts'

const OPTIONS = {
  config: CONFIG,
  'token-id': value('ID', 'one token, by its jti'),
  user: value('USER', 'all tokens of a user, also future ones: issuer:subject, as in the log'),
  before: value('TIME', 'only tokens issued before TIME: 2026-01-31T12:00:00Z, or now, which includes the clock tolerance'),
  lift: flag('removes the revocation'),
  list: flag('prints all revocations'),
  json: jsonFlag('{"revoked"}, {"lifted"} or {"revocations"}'),
} as const

export const command = defineCommand({
  usage: ['--token-id ID', '--user USER', '--list'],
  about: `Revokes a token, or the tokens of a user, before they expire. Gateways with the same store refuse them within a second, without a
restart. It does not change who owns a thread: threadwarden threads revoke removes an owner.`,
  options: OPTIONS,
  exitCodes: { 0: 'done', 1: 'there was no such revocation to remove, an invalid configuration or a failing store' },
  examples: [
    'threadwarden revoke --token-id 7f3a',
    'threadwarden revoke --user corp:alice --before now',
    'threadwarden revoke --list',
  ],

  async run(values, terminal) {
    const { lift, json } = values
    const what = revokedIn(values)
    const now = Date.now()
    const before = values.before === undefined ? null : timeBefore(values.before, now)
    const prepared = loadConfig(terminal, { config: values.config })
    const { authentication } = prepared.config
    const userId = what !== null && 'userId' in what ? what.userId : null
    // A revocation for an unknown issuer would have no effect. Lifting one is fine: the issuer may have been removed.
    const fault = userId === null || lift ? null : granteeFault(userId, Object.keys(authentication.issuers))
    if (fault !== null) throw new UsageError(fault)
    if (authentication.mode === 'off')
      complain(terminal, 'warning: authentication.mode is off: the gateway reads no tokens, so it refuses none')
    return withStore(terminal, prepared, { make: false }, async (store) => {
      if (what === null) {
        const all = await store.revocations()
        if (json) printData(terminal, { revocations: all.map(shown) })
        else for (const text of all.length === 0 ? ['there are no revocations'] : all.map(line)) print(terminal, text)
        return EXIT.fine
      }
      if (lift) {
        const lifted = await store.lift(what)
        if (json) printData(terminal, { lifted }, 0)
        else if (lifted) print(terminal, `no longer revoked: ${'tokenId' in what ? `token ${what.tokenId}` : what.userId}`)
        else complain(terminal, 'there is no such revocation')
        return lifted ? EXIT.fine : EXIT.failure
      }
      // The issuer's clock may be ahead: a token that it issued just now would seem to be issued after `now`.
      const issuer = authentication.issuers[userId?.split(':', 1)[0] ?? '']
      const tolerance = values.before === 'now' ? (issuer?.clockTolerance ?? authentication.clockTolerance) : 0
      const revocation: Revocation =
        'tokenId' in what
          ? { kind: 'token', ...what, revokedAt: now }
          : { kind: 'user', ...what, before: before === null ? null : before + tolerance, revokedAt: now }
      await store.revoke(revocation)
      // A wider revocation may have existed before.
      const effective = revocationOf(what, await store.revocations()) ?? revocation
      if (json) printData(terminal, { revoked: shown(effective) })
      else print(terminal, `revoked: ${line(effective)}`)
      return EXIT.fine
    })
  },
})

/**
 * @returns null for `--list`
 * @throws UsageError for options that make no sense together
 */
function revokedIn({ 'token-id': tokenId, user: userId, before, lift, list }: Values<typeof OPTIONS>): Revoked | null {
  if (list) {
    if (tokenId !== undefined || userId !== undefined || before !== undefined || lift)
      throw new UsageError('--list can only be combined with --config and --json')
    return null
  }
  if ((tokenId === undefined) === (userId === undefined))
    throw new UsageError('name one of --token-id ID, --user USER and --list')
  if (before !== undefined && (lift || userId === undefined))
    throw new UsageError('--before TIME can only be combined with --user USER')
  if (tokenId !== undefined && !isTokenId(tokenId))
    throw new UsageError('--token-id must be the jti of a token: 1 to 1024 characters')
  if (userId !== undefined && userFault(userId, []) === 'form') throw new UsageError('--user must be a user id: issuer:subject')
  return tokenId === undefined ? { userId: userId ?? '' } : { tokenId }
}

function timeBefore(text: string, now: number): number {
  const time = text === 'now' ? now : timeOf(text)
  if (time === null) throw new UsageError('--before must be a time with its zone (2026-01-31T12:00:00Z) or now')
  return time
}

function line(revocation: Revocation): string {
  const one = shown(revocation)
  if ('tokenId' in one) return `token ${one.tokenId} (since ${one.revokedAt})`
  const which = one.before === null ? 'all tokens' : `tokens issued before ${one.before}`
  return `${which} of ${one.user} (since ${one.revokedAt})`
}
