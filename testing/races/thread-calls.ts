/** What race tests ask of a store about one thread, and what it answers, in a form that can be written down. */
import type { Grant, Grantee, Reader } from '../../src/core/decide/sharing.ts'
import type { AssignOutcome } from '../../src/store/port/administration.ts'
import type { ClaimResult, RunOutcome } from '../../src/store/port/claims.ts'
import type { GrantOutcome } from '../../src/store/port/grants.ts'

/** What is asked of the store: about one thread, and last about all threads, of which one of them sees its part. */
export type Call =
  | { readonly op: 'claim'; readonly user: string; readonly guest: boolean }
  | { readonly op: 'settle'; readonly user: string; readonly registration: number; readonly outcome: RunOutcome }
  | { readonly op: 'bury'; readonly user: string }
  | { readonly op: 'rename'; readonly user: string; readonly name: string }
  | { readonly op: 'archive'; readonly user: string; readonly archived: boolean }
  | { readonly op: 'grant'; readonly owner: string | null; readonly grant: Grant }
  | { readonly op: 'ungrant'; readonly owner: string | null; readonly grantee: Grantee }
  | { readonly op: 'assign'; readonly user: string }
  | { readonly op: 'withhold' }
  | { readonly op: 'accessTo' | 'accessToSeveral'; readonly reader: Reader }
  | { readonly op: 'thread' }
  | { readonly op: 'transfer'; readonly from: string; readonly to: string }
  | { readonly op: 'erase'; readonly user: string }
  | { readonly op: 'prune' }

/** Those about one thread. */
export type OneThreadCall = Exclude<Call, { readonly op: 'transfer' | 'erase' | 'prune' }>

/** What the store answers, in a form that can be written down and compared. */
export type Answer = ClaimResult | AssignOutcome | GrantOutcome | SeenAccess | SeenThread | boolean | null

/** A standing without who was seen under `observe`. */
export type SeenAccess = {
  readonly owner: string
  readonly deleted: boolean
  readonly provisional: boolean
  readonly granted: string | null
} | null

/** A whole row without times. */
export type SeenThread = {
  readonly owner: string
  readonly deleted: boolean
  readonly provisional: boolean
  readonly name: string | null
  readonly archived: boolean
  /** As `kind id right`, sorted. */
  readonly grants: readonly string[]
} | null

/** A grant as a thread that was seen has it. */
export function grantText({ kind, id, right }: Grant): string {
  return `${kind} ${id} ${right}`
}

/** True for what changes nothing: where it fails nothing is to be found out. */
export function isLook({ op }: Call): boolean {
  return op === 'accessTo' || op === 'accessToSeveral' || op === 'thread'
}
