/**
 * Fixes that can be removed, to show that the histories find what each of them prevents. Preloaded with a fix's name in
 * THREADWARDEN_WITHOUT, it loads the program without that fix.
 */
import { registerHooks } from 'node:module'

/** A fix, as a piece of one source file and what the file says without the fix. */
export interface Fix {
  readonly file: string
  readonly present: string
  readonly removed: string
  /** What the histories report without it. */
  readonly found: RegExp
  /** Some scenarios that find it. */
  readonly scenarios: string
  /** The store that the histories are taken on. */
  readonly store: 'sqlite' | 'postgres'
}

/** By what each of them does. */
export const FIXES: Readonly<Record<string, Fix>> = {
  'answers are checked before they begin': {
    file: 'src/http/upstream/forward.ts',
    present: 'return late ?? (owner.permit === undefined ? null : exchange.snapshot.refusal(owner.permit, permittedAt))',
    removed: 'return null',
    found: /bob was given what alice wrote/,
    scenarios: 'a read while the',
    store: 'sqlite',
  },
  'open answers are checked when access changes': {
    file: 'src/snapshot/stream-recheck.ts',
    present: 'if (ending.length > 0) answers.endOf(new Set(ending))',
    removed: '',
    found: /bob was given what alice(?:,bob)* wrote/,
    scenarios: 'a run while the',
    store: 'sqlite',
  },
  'only the deletion that was begun buries a thread (SQLite)': {
    file: 'src/store/sqlite/ownership.ts',
    present: '${MINE} AND deletion = :deletion AND deleted_at IS NULL`',
    removed: '${MINE} AND (deletion = :deletion OR 1) AND deleted_at IS NULL`',
    found: /counts as gone/,
    scenarios: 'two deletions and a run',
    store: 'sqlite',
  },
  'only the deletion that was begun buries a thread (PostgreSQL)': {
    file: 'src/store/postgres/ownership.ts',
    present: '${MINE} AND deletion = $6 AND deleted_at IS NULL',
    removed: "${MINE} AND (deletion = $6 OR $6 <> '') AND deleted_at IS NULL",
    found: /counts as gone/,
    scenarios: 'two deletions and a run',
    store: 'postgres',
  },
  'a deletion beside a run that may be executing leaves the thread upstream': {
    file: 'src/http/pipeline/claim.ts',
    present: 'const isUndisturbed = !sharesScope && !runs.mayBeExecuting(key)',
    removed: 'const isUndisturbed = !sharesScope && runs !== undefined',
    found: /counts as gone|claimed what/,
    scenarios: 'a deletion and a run',
    store: 'sqlite',
  },
  'a request is sent only if access lasts until there is a connection': {
    file: 'src/http/upstream/forward.ts',
    present:
      'known.isOutdated = snapshot.outdated(permittedAt, descriptor.ids.threadId) || answers.refusal(owner, AT_EXPIRY) !== null',
    removed: 'known.isOutdated = snapshot === undefined',
    found: /of bob was sent without access/,
    scenarios: 'a run while the grant ends',
    store: 'sqlite',
  },
  'a request is decided by the rules that are active when it is sent': {
    file: 'src/snapshot/manager.ts',
    present: 'if (this.snapshot !== active) return true',
    removed: 'return false',
    found: /by a configuration that was replaced/,
    scenarios: 'a run while the rules change',
    store: 'sqlite',
  },
}

const name = process.env['THREADWARDEN_WITHOUT']
if (name !== undefined) {
  const fix = FIXES[name]
  if (fix === undefined) throw new Error(`no such fix: ${name}`)
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context)
      if (!url.endsWith(`/${fix.file}`)) return loaded
      const source = typeof loaded.source === 'string' ? loaded.source : new TextDecoder().decode(loaded.source)
      if (!source.includes(fix.present)) throw new Error(`${fix.file} no longer has the fix "${name}"`)
      return { ...loaded, source: source.replace(fix.present, () => fix.removed) }
    },
  })
}
