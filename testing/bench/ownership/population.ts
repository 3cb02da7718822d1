/**
 * The threads that are measured on. Each is a function of its number, so that nothing has to be kept of them, and both stores
 * hold the same. They are in the order of their ids.
 */
import type { Grant } from '../../../src/core/decide/sharing.ts'
import type { ThreadRow } from '../../../src/store/port/administration.ts'

/** A row to be. Times are milliseconds since the epoch. */
export interface SeededThread extends Omit<ThreadRow, 'scope' | 'provisional'> {
  readonly grants: readonly Grant[]
}

/** All of them. */
export interface Population {
  /** How many there are, those of the heavy user included. */
  readonly total: number
  /** The thread of a number below that. */
  thread(number: number): SeededThread
}

/** Beside the threads of the others, in a table of any size: what is asked of this user costs the same in each, or should. */
export const HEAVY = { userId: 'corp:heavy', threads: 10_000 } as const

/** Has no thread, and was granted about so many: as a user, and as one of a group. In a table of any size as well. */
export const GUEST = { userId: 'corp:guest', group: 'corp:guests', ofUser: 500, ofGroup: 1000 } as const

/** Twenty threads a user in the mean, and the more the lower the user's number is. */
const THREADS_PER_USER = 20
const USERS_PER_GROUP = 10_000

/** When the last thread was used, whatever day it is: a table is the same whenever it is made. */
export const NOW = Date.UTC(2026, 0, 1)
const DAY = 86_400_000

/** What a hash is of: no two of them go together. */
const SALTS = { place: 1, id: 2, user: 3, fate: 4, age: 5, use: 6, grantee: 7, name: 8, guest: 9 } as const

/**
 * Makes the population.
 * @param rows how many threads there are beside those of the heavy user
 */
export function populate(rows: number): Population {
  const total = rows + HEAVY.threads
  const users = Array.from({ length: usersAmong(rows) }, (_, number) => userOf(number))
  return {
    total,
    thread(number) {
      const chance = (salt: keyof typeof SALTS): number => hash(number, SALTS[salt]) / 2 ** 32
      const heavy = isOneOf(number, HEAVY.threads, total)
      const deleted = !heavy && chance('fate') < 0.01
      const createdAt = NOW - Math.floor(chance('age') * 730 * DAY)
      const lastUsedAt = createdAt + Math.floor(chance('use') ** 4 * (NOW - createdAt))
      return {
        threadId: idOf(number, total),
        owner: heavy ? HEAVY.userId : (users[Math.floor(chance('user') ** 2 * users.length)] ?? ''),
        agentId: AGENTS[hash(number, SALTS.name) % AGENTS.length] ?? '',
        name: hash(number, SALTS.name) % 2 === 0 ? `About the ${hash(number, SALTS.age) % 100_000}th question of the day` : null,
        archived: chance('fate') > 0.95,
        createdAt,
        lastUsedAt,
        deletedAt: deleted ? lastUsedAt : null,
        grants: deleted || heavy ? [] : grantsOf(number, total, chance('grantee'), users),
      }
    },
  }
}

/** How many users so many threads are spread over. */
export function usersAmong(rows: number): number {
  return Math.max(1, Math.round(rows / THREADS_PER_USER))
}

/** The user of a number. */
export function userOf(number: number): string {
  return `corp:${uuid(hash(number, SALTS.user) * 2 ** 16 + (number & 0xffff), number)}`
}

/** An id as good as any, which no thread has: it says that it is of another version. */
export function missingId(number: number): string {
  const id = idOf(number, 2 ** 32)
  return `${id.slice(0, 14)}7${id.slice(15)}`
}

const AGENTS = ['default', 'default', 'default', 'research', 'support'] as const

/** Half a percent of the threads have a grant, half of those to a user and half to a group. */
function grantsOf(number: number, total: number, chance: number, users: readonly string[]): Grant[] {
  const grants: Grant[] = []
  if (chance < 0.005) {
    const [toUser, which] = [hash(number, SALTS.fate) % 2 === 0, hash(number, SALTS.place)]
    const group = `corp:group-${which % Math.max(1, Math.round(users.length / USERS_PER_GROUP))}`
    const id = toUser ? (users[which % users.length] ?? '') : group
    grants.push({ kind: toUser ? 'user' : 'group', id, right: hash(number, SALTS.use) % 2 === 0 ? 'read' : 'write' })
  }
  const lot = (hash(number, SALTS.guest) / 2 ** 32) * (total - HEAVY.threads)
  if (lot < GUEST.ofUser) grants.push({ kind: 'user', id: GUEST.userId, right: 'read' })
  else if (lot < GUEST.ofUser + GUEST.ofGroup) grants.push({ kind: 'group', id: GUEST.group, right: 'write' })
  return grants
}

/** True for so many of all numbers, evenly spread. */
function isOneOf(number: number, count: number, total: number): boolean {
  return Math.floor(((number + 1) * count) / total) > Math.floor((number * count) / total)
}

/** The place among all of them stands in its first six bytes, so that they are in order. */
function idOf(number: number, total: number): string {
  return uuid(Math.floor((number + hash(number, SALTS.place) / 2 ** 32) * (2 ** 48 / total)), number)
}

const bytes = Buffer.alloc(16)

/** A UUID as random ones look (RFC 9562, version 4), with these first six bytes. */
function uuid(first: number, number: number): string {
  bytes.writeUIntBE(first, 0, 6)
  bytes.writeUInt16BE(0x4000 | (hash(number, SALTS.use) & 0x0fff), 6)
  bytes.writeUInt32BE((0x80000000 | (hash(number, SALTS.age) & 0x3fffffff)) >>> 0, 8)
  bytes.writeUInt32BE(hash(number, SALTS.id), 12)
  const digits = bytes.toString('hex')
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-${digits.slice(12, 16)}-${digits.slice(16, 20)}-${digits.slice(20)}`
}

/** 32 bits that look random: the finalizer of MurmurHash3. */
function hash(number: number, salt: number): number {
  let bits = Math.imul(number + 1, 0x9e3779b1) ^ Math.imul(salt, 0x85ebca77)
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}

/** Numbers from 0 to below 1 that look random, the same ones for the same seed. */
export function randomFrom(seed: number): () => number {
  let count = 0
  return () => hash((count += 1), seed) / 2 ** 32
}
