/**
 * What the store says of one thread, as plain code without anything at once: the port's words (src/store/port/) written a
 * second time. A history of calls that ran at once is right if this model gives the same answers in some order of them.
 */
import { rightIn, type Grant, type Grantee, type Reader } from '../../src/core/decide/sharing.ts'
import type { RunOutcome } from '../../src/store/port/claims.ts'
import { grantText, type Answer, type Call, type OneThreadCall, type SeenAccess, type SeenThread } from './thread-calls.ts'

/** A row. */
interface Row {
  readonly owner: string
  readonly deleted: boolean
  readonly gone: boolean
  readonly provisional: boolean
  readonly pending: number
  readonly life: number
  readonly name: string | null
  readonly archived: boolean
  readonly grants: readonly Grant[]
}

/** A thread's row, or null where there is none. */
export type ThreadState = Row | null

/** What a call comes to. */
export interface Done {
  readonly state: ThreadState
  readonly answer: Answer
}

const SETTLED = { provisional: false, pending: 0 } as const
const FIRST = { deleted: false, gone: false, life: 0, name: null, archived: false, grants: [] } as const

/**
 * Does one call after all before it.
 * @returns what it may come to. A step on all threads may leave one as it was that came to what it looks for at the same time
 */
export function doCall(state: ThreadState, call: Call): readonly Done[] {
  switch (call.op) {
    case 'transfer':
      return [state, moved(state, call.from, call.to), grantsMoved(state, call.from, call.to)]
        .concat(grantsMoved(moved(state, call.from, call.to), call.from, call.to))
        .map(quietly)
    case 'erase': {
      const buried = isOf(state, call.user) ? taken({ ...state, name: null, deleted: true, grants: [] }, '') : state
      return [state, buried, withoutGrantTo(state, call.user), withoutGrantTo(buried, call.user)].map(quietly)
    }
    case 'prune':
      return [state, state?.gone === true && !state.provisional ? null : state].map(quietly)
    default:
      return [doOne(state, call)]
  }
}

function doOne(state: ThreadState, call: OneThreadCall): Done {
  switch (call.op) {
    case 'claim':
      return claim(state, call.user, call.guest)
    case 'settle':
      return settle(state, call.user, call.registration, call.outcome)
    case 'bury':
      if (!isOf(state, call.user)) return { state, answer: null }
      return { state: { ...state, ...SETTLED, deleted: true, gone: true, grants: [] }, answer: null }
    case 'rename':
      if (!isOf(state, call.user) || state.deleted) return { state, answer: false }
      return { state: { ...state, name: call.name }, answer: true }
    case 'archive':
      if (!isOf(state, call.user) || state.deleted) return { state, answer: false }
      return { state: { ...state, archived: call.archived }, answer: true }
    case 'grant': {
      if (!isGrantable(state, call.owner)) return { state, answer: 'not-owner' }
      const others = state.grants.filter((one) => !isSame(one, call.grant))
      const before = state.grants.find((one) => isSame(one, call.grant))
      if (before?.right === call.grant.right) return { state, answer: 'unchanged' }
      return { state: { ...state, grants: [...others, call.grant] }, answer: 'done' }
    }
    case 'ungrant': {
      if (!isGrantable(state, call.owner)) return { state, answer: 'not-owner' }
      const grants = state.grants.filter((one) => !isSame(one, call.grantee))
      return { state: { ...state, grants }, answer: grants.length < state.grants.length ? 'done' : 'unchanged' }
    }
    case 'assign':
      return assign(state, call.user)
    case 'withhold':
      if (state === null) return { state, answer: false }
      if (state.owner === '') return { state, answer: true }
      return { state: taken({ ...state, grants: [] }, ''), answer: true }
    case 'accessTo':
    case 'accessToSeveral':
      return { state, answer: seenAccess(state, call.reader) }
    case 'thread':
      return { state, answer: seen(state) }
  }
}

/** States that behave alike have one text. */
export function stateText(state: ThreadState): string {
  return JSON.stringify(state === null ? null : { ...state, grants: seen(state)?.grants })
}

function claim(state: ThreadState, user: string, guest: boolean): Done {
  if (state === null) {
    if (guest) return { state, answer: { outcome: 'foreign' } }
    return {
      state: { ...FIRST, owner: user, provisional: true, pending: 1 },
      answer: { outcome: 'new', registration: 0 },
    }
  }
  if (state.owner !== user || (guest && state.deleted)) return { state, answer: { outcome: 'foreign' } }
  const { life, pending } = state
  if (state.provisional) return { state: { ...state, pending: pending + 1 }, answer: { outcome: 'own', registration: life } }
  if (!state.deleted) return { state, answer: { outcome: 'own', registration: null } }
  return {
    state: { ...state, provisional: true, pending: 1, life: life + 1 },
    answer: { outcome: 'new', registration: life + 1 },
  }
}

function settle(state: ThreadState, user: string, registration: number, outcome: RunOutcome): Done {
  if (!isOf(state, user) || !state.provisional || state.life !== registration) return { state, answer: false }
  if (outcome === 'stays' && !state.deleted) return { state, answer: false }
  if (outcome !== 'not-started') return { state: { ...state, ...SETTLED, deleted: false, gone: false }, answer: false }
  if (state.pending > 1) return { state: { ...state, pending: state.pending - 1 }, answer: false }
  return { state: state.deleted ? { ...state, ...SETTLED } : null, answer: true }
}

function assign(state: ThreadState, to: string): Done {
  if (state === null) return { state: { ...FIRST, ...SETTLED, owner: to }, answer: { outcome: 'assigned', before: null } }
  if (state.owner === to && !state.deleted && !state.provisional) return { state, answer: { outcome: 'same' } }
  return {
    state: { ...state, ...SETTLED, owner: to, deleted: false, gone: false, life: state.life + 1, grants: [] },
    answer: { outcome: 'assigned', before: state.owner },
  }
}

/** A row in another life, in which old registrations settle nothing. The run of a revival may have begun anew what was gone. */
function taken(row: Row, owner: string): Row {
  return { ...row, ...SETTLED, owner, gone: row.gone && !row.provisional, life: row.life + 1 }
}

/** A live row that no run has confirmed stays one, as by a run that nobody will settle. */
function moved(state: ThreadState, from: string, to: string): ThreadState {
  if (!isOf(state, from)) return state
  const open = state.provisional && !state.deleted ? { provisional: true, pending: 1 } : SETTLED
  return withoutGrantTo({ ...taken(state, to), ...open }, to)
}

/** Of two grants the wider stays, and none to the owner. */
function grantsMoved(state: ThreadState, from: string, to: string): ThreadState {
  const given = state?.grants.find((one) => isSame(one, { kind: 'user', id: from }))
  if (state === null || given === undefined) return state
  const had = state.grants.find((one) => isSame(one, { kind: 'user', id: to }))
  const others = withoutGrantTo(withoutGrantTo(state, from), to)?.grants ?? []
  const right = had?.right === 'write' ? 'write' : given.right
  if (state.owner === to) return { ...state, grants: had === undefined ? others : [...others, had] }
  return { ...state, grants: [...others, { kind: 'user', id: to, right }] }
}

function withoutGrantTo(state: ThreadState, user: string): ThreadState {
  return state === null ? null : { ...state, grants: state.grants.filter((one) => !isSame(one, { kind: 'user', id: user })) }
}

/** A step on all threads says nothing of one of them. */
function quietly(state: ThreadState): Done {
  return { state, answer: null }
}

function seenAccess(state: ThreadState, reader: Reader): SeenAccess {
  if (state === null) return null
  return { owner: state.owner, deleted: state.deleted, provisional: state.provisional, granted: rightIn(state.grants, reader) }
}

function seen(state: ThreadState): SeenThread {
  if (state === null) return null
  const { owner, deleted, provisional, name, archived, grants } = state
  return { owner, deleted, provisional, name, archived, grants: grants.map(grantText).sort() }
}

function isOf(state: ThreadState, user: string): state is Row {
  return state !== null && state.owner === user
}

function isGrantable(state: ThreadState, owner: string | null): state is Row {
  return state !== null && !state.deleted && state.owner !== '' && (owner === null || state.owner === owner)
}

function isSame(one: Grantee, other: Grantee): boolean {
  return one.kind === other.kind && one.id === other.id
}
