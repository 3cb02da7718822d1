/**
 * The real gate, claims, store, review and reload of one or two gateways on one store, between callers and a virtual runtime,
 * with a virtual clock; and an oracle that looks at the table and the runtime after each step.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSigner } from 'fast-jwt'
import { makeCursorSeal } from '../../src/http/lists/cursor.ts'
import { beginExchange } from '../../src/http/pipeline/exchange.ts'
import { makeSnapshotManager, type SnapshotManager } from '../../src/snapshot/manager.ts'
import { makeOpenAnswers } from '../../src/http/upstream/open-answers.ts'
import { makeReadiness } from '../../src/http/listeners/readiness.ts'
import { makeBudget } from '../../src/http/pipeline/request-body.ts'
import { makeRunsUnderWay } from '../../src/http/pipeline/claim.ts'
import { makeMemoryLimiter } from '../../src/limits/memory.ts'
import { makeLog } from '../../src/observe/log.ts'
import { makeMetrics } from '../../src/observe/metrics.ts'
import { prepare, type Prepared } from '../../src/snapshot/load.ts'
import type { RevocationList } from '../../src/store/port/revocations.ts'
import type { Store } from '../../src/store/port/store.ts'
import { makeRevocationList } from '../../src/store/revocations.ts'
import { configuration } from '../support/configuration.ts'
import { runInput } from '../support/client.ts'
import { watched, type Engine, type Row, type Tables } from './engine.ts'
import { Scheduler, type Choice } from './scheduler.ts'
import { CONTENT, virtualRuntime, type RuntimeState } from './virtual-runtime.ts'

/** What can happen, and by whom it is done at which gateway. */
export type Operation = 'run' | 'read' | 'delete' | 'grant' | 'ungrant' | 'transfer' | 'prune' | 'reload' | 'revoke' | 'crash'

/** One of the operations of a history. */
export interface Act {
  readonly what: Operation
  readonly user: string
  /** Where it is done; with `any`, at which of two gateways is a choice of the schedule. */
  readonly gateway: 'A' | 'B' | 'any'
}

/** What is there at the beginning of a history. */
export interface Beginning {
  readonly granted: boolean
  /** How often a second may pass. */
  readonly seconds: number
}

const KEY = { scope: '', threadId: 't' }
const LOG = makeLog('silent')
const SECRET = 'x'.repeat(64)
const sign = createSigner({ key: SECRET, algorithm: 'HS256' })
const BASE = '/api/copilotkit'
/** Access may go on for so long after it ended (SECURITY.md, "Promised times"). */
const PROMISED_MS = 1000
/** Longer than that, and than every interval by which gateways hear of one another. */
const A_SECOND_MS = 1100

const POLICY = `version: 1
sharing: true
rules:
  - { routes: [agent/run], allow: [signed-in], threads: [own, unknown, shared] }
  - { routes: [threads/messages], allow: [signed-in], threads: [own, shared] }
  - { routes: [threads/update], allow: [signed-in], threads: [own] }
`

/** What all histories share: two configurations, and the kind of store. */
export interface Template {
  readonly engine: Engine
  readonly prepared: Readonly<Record<'a' | 'b', Prepared>>
  readonly remove: () => Promise<void>
}

/** Makes it. The second configuration denies bob everything. */
export function makeTemplate(engine: Engine): Template {
  const folder = mkdtempSync(join(tmpdir(), 'threadwarden-test-'))
  writeFileSync(join(folder, 'secret'), SECRET)
  const preparedAs = (letter: 'a' | 'b'): Prepared => {
    const file = join(folder, `${letter}.json`)
    writeFileSync(
      `${file}.policy`,
      `${POLICY}${letter === 'b' ? '  - { routes: all, deny: [signed-in], claims: [{ at: /sub, equals: bob }] }\n' : ''}`,
    )
    const tree = configuration({
      'upstream.transport': 'multi-route',
      'upstream.headers': { 'x-generation': letter },
      'authentication.issuers.corp': { issuer: 'corp', audiences: ['chat'], algorithms: ['HS256'], secretFile: 'secret' },
      'ownership.store': 'sqlite:./store.db',
      'streams.keepAlive': '0s',
      'limits.newThreads': 'off',
      policy: `./${letter}.json.policy`,
    })
    writeFileSync(file, JSON.stringify(tree))
    const outcome = prepare(file, {})
    if (!outcome.ok) throw new Error(JSON.stringify(outcome.faults))
    return outcome.value
  }
  const prepared = { a: preparedAs('a'), b: preparedAs('b') }
  const remove = async (): Promise<void> => {
    rmSync(folder, { recursive: true, force: true })
    await engine.remove()
  }
  return { engine, prepared, remove }
}

interface GatewayInHistory {
  readonly name: string
  readonly store: Store
  readonly snapshots: SnapshotManager
  readonly revocations: RevocationList
}

/** What a gateway's configuration is, also when the gateway starts again. */
interface Rules {
  /** What its file says. */
  readonly letter: 'a' | 'b'
  /** When it became that; the rules of `b` deny bob everything. */
  readonly since: number
}

/** One history on its way. */
export class World {
  readonly scheduler: Scheduler
  readonly violations: string[] = []
  readonly steps: string[] = []
  readonly #template: Template
  readonly #acts: readonly Act[]
  readonly #tables: Tables
  readonly #uninstall: () => void
  readonly #runtime: RuntimeState = { content: ['alice'] }
  readonly #gateways = new Map<string, GatewayInHistory>()
  /** By the gateway's first name, whatever it is called after a crash. */
  readonly #rules = new Map<string, Rules>()
  /** Until when each user may have had access to the thread. */
  readonly #access = new Map<string, number>()
  /** Who wrote what the owner may see: those who had access while they wrote, or whose thread it became. */
  #owner: string | null = 'alice'
  #heir = true
  /** When bob was revoked. */
  #revokedAt: number | null = null
  #row: Row | undefined
  #parking = false
  #secondsLeft: number
  /** The operations that have begun, each with its gateway. */
  #begun = new Map<Act, string>()

  private constructor(template: Template, acts: readonly Act[], { seconds }: Beginning, scheduler: Scheduler, tables: Tables) {
    this.scheduler = scheduler
    this.#template = template
    this.#acts = acts
    this.#secondsLeft = seconds
    this.#tables = tables
    this.scheduler.quiet = () => tables.quiet()
    this.#uninstall = this.scheduler.install()
  }

  static async make(template: Template, acts: readonly Act[], beginning: Beginning): Promise<World> {
    const scheduler = new Scheduler()
    let isParking = (): boolean => false
    const tables = await template.engine.begin(scheduler, () => isParking())
    const world = new World(template, acts, beginning, scheduler, tables)
    isParking = () => world.#parking
    const names = acts.flatMap(({ gateway }) => (gateway === 'any' ? ['A', 'B'] : [gateway]))
    for (const name of new Set(names)) await world.#open(name)
    const [first] = world.#gateways.values()
    if (first === undefined) throw new Error('a history without a gateway')
    const claim = { userId: 'corp:alice', agentId: 'default', guest: false, now: world.scheduler.now }
    await first.store.claim(KEY, claim)
    await first.store.settle(KEY, 'corp:alice', 0, 'confirmed')
    if (beginning.granted) {
      const grant = { kind: 'user', id: 'corp:bob', right: 'write', grantedBy: 'operator', grantedAt: 1 } as const
      await first.store.grant(KEY, null, grant)
      await world.scheduler.pass(A_SECOND_MS)
    }
    world.#parking = true
    await world.#look('')
    return world
  }

  /** What may happen next. */
  choices(): readonly Choice[] {
    const all = [...this.scheduler.choices()]
    for (const act of this.#acts) {
      if (this.#begun.has(act)) continue
      for (const gateway of this.#places(act))
        all.push({ name: `${act.user} ${act.what} begins at ${gateway}`, go: () => this.#begin(act, gateway) })
    }
    if (this.#secondsLeft > 0 && all.length > 0) {
      all.push({
        name: 'a second passes',
        go: () => {
          this.#secondsLeft -= 1
          return this.scheduler.pass(A_SECOND_MS)
        },
      })
    }
    return all
  }

  /** The gateways at which an operation may begin. As long as nothing has begun, one is like the other. */
  #places({ gateway }: Act): readonly string[] {
    if (gateway !== 'any') return [gateway]
    return this.#begun.size === 0 ? ['A'] : ['A', 'B']
  }

  /** Lets one of them happen, and looks at what came of it. */
  async step(at: number): Promise<void> {
    const choice = this.choices()[at]
    if (choice === undefined) throw new Error('no such choice')
    this.steps.push(choice.name)
    await this.scheduler.take(choice)
    await this.#look(choice.name)
  }

  /** All that the rest of the history follows from, as far as it can be seen. */
  async key(): Promise<string> {
    const gateways = [...this.#gateways].map(([name, { snapshots }]) => [name, snapshots.current().number])
    const parked = this.scheduler.choices().map(({ name }) => name)
    const { now } = this.scheduler
    return JSON.stringify([
      await this.#tables.rows(),
      this.#runtime,
      gateways,
      [...this.#rules],
      parked,
      this.scheduler.heard(),
      now,
      this.#secondsLeft,
      this.#acts.map((act) => this.#begun.get(act)),
      [...this.#access],
      this.#revokedAt,
      this.#owner,
      this.#heir,
    ])
  }

  async close(): Promise<void> {
    this.#parking = false
    const gateways = [...this.#gateways.values()]
    for (const { name, snapshots, revocations } of gateways) {
      this.scheduler.crash(name)
      snapshots.stop()
      revocations.stop()
    }
    await this.#tables.close(gateways.map(({ store }) => store))
    this.#uninstall()
  }

  async #open(name: string): Promise<void> {
    const { scheduler } = this
    await new Promise<void>((resolve, reject) => {
      scheduler.start(`gateway ${name}`, name, () => this.#make(name).then(resolve, reject))
    })
  }

  async #make(name: string): Promise<void> {
    const { scheduler } = this
    const real = await this.#tables.open()
    const store = this.#watched(real)
    const clock = (): number => scheduler.now
    const metrics = makeMetrics()
    const revocations: RevocationList = await makeRevocationList(real, { onChange: () => answers.endRevoked() })
    const answers = makeOpenAnswers(clock, metrics.streams, revocations.isRevoked)
    const rules = this.#rules.get(firstName(name)) ?? { letter: 'a', since: -Infinity }
    const runtime = virtualRuntime(scheduler, this.#runtime, {
      sent: (user, what, letter) => this.#sent(user, what, letter, name),
      wrote: (user) => this.#wrote(user),
    })
    const requests = {
      store,
      sealOf: () => makeCursorSeal(new Uint8Array(32), ''),
      limiter: makeMemoryLimiter(),
      answers,
      runs: makeRunsUnderWay(clock),
      memory: { bodies: makeBudget(2 ** 30), reading: makeBudget(2 ** 30), answers: makeBudget(2 ** 30) },
      metrics,
      log: LOG,
      clock,
      state: { isRevoked: revocations.isRevoked, isShuttingDown: false },
    }
    const snapshots = makeSnapshotManager(
      this.#template.prepared[rules.letter],
      { requests, store, readiness: makeReadiness(), runtime, addresses: [], before: 0, secure: () => {} },
      () => {},
    )
    void snapshots.current().begin()
    await scheduler.settle()
    this.#gateways.set(name, { name, store: real, snapshots, revocations })
  }

  /** The store, of which each step is a choice of the schedule. */
  #watched(store: Store): Store {
    const { scheduler } = this
    return watched(store, (name, answer) => void scheduler.actor().heard.push(`${name}=${answer}`))
  }

  async #begin(act: Act, name: string): Promise<void> {
    this.#begun.set(act, name)
    const { what, user } = act
    if (what === 'crash') {
      const gone = this.#gateways.get(name)
      this.scheduler.crash(name)
      this.#gateways.delete(name)
      gone?.snapshots.stop()
      gone?.revocations.stop()
      // Its connections are gone, and it starts again under another name.
      if (gone !== undefined) await this.#tables.crash(name, gone.store)
      return
    }
    const gateway = this.#gateways.get(name) ?? (await this.#restarted(name))
    this.scheduler.start(`${user} ${what} ${this.#acts.indexOf(act)}`, gateway.name, async () => {
      await this.#do(act, gateway)
    })
  }

  async #restarted(name: string): Promise<GatewayInHistory> {
    const again = `${name}${AGAIN}`
    if (!this.#gateways.has(again)) {
      this.#parking = false
      await this.#open(again)
      this.#parking = true
    }
    return this.#gateways.get(again)!
  }

  async #do({ what, user }: Act, gateway: GatewayInHistory): Promise<void> {
    const store = this.#watched(gateway.store)
    const bob = { kind: 'user', id: 'corp:bob' } as const
    switch (what) {
      case 'run':
        return this.#request(gateway, user, 'POST', '/agent/default/run', JSON.stringify(runInput('t')))
      case 'read':
        return this.#request(gateway, user, 'GET', '/threads/t/messages')
      case 'delete':
        return this.#request(gateway, user, 'DELETE', '/threads/t')
      case 'grant':
        await store.grant(KEY, null, { ...bob, right: 'write', grantedBy: 'operator', grantedAt: 1 })
        return
      case 'ungrant':
        await store.ungrant(KEY, null, bob)
        return
      case 'transfer':
        await store.transfer('corp:alice', 'corp:carol', 10)
        return
      case 'prune':
        await store.prune({ deletedBefore: this.scheduler.now + 1 }, 10)
        return
      case 'revoke':
        await store.revoke({ kind: 'user', userId: 'corp:bob', before: null, revokedAt: this.scheduler.now })
        this.#revokedAt ??= this.scheduler.now
        return
      case 'reload': {
        const next = await gateway.snapshots.make(this.#template.prepared.b)
        this.#rules.set(firstName(gateway.name), { letter: 'b', since: this.scheduler.now })
        await gateway.snapshots.activate(next)
        return
      }
      case 'crash':
        throw new Error('a crash is no work')
    }
  }

  async #request(gateway: GatewayInHistory, user: string, method: string, path: string, body?: string): Promise<void> {
    const seconds = Math.floor(this.scheduler.now / 1000)
    const token = sign({ iss: 'corp', aud: 'chat', sub: user, iat: seconds, exp: 4_000_000_000 })
    const headers = [
      ['host', 'a'],
      ['authorization', `Bearer ${token}`],
      ...(body === undefined
        ? []
        : [['content-type', 'application/json'] as const, ['content-length', String(body.length)] as const]),
    ] as const
    const message = Object.assign(new IncomingMessage(new Socket()), { method, url: BASE + path, httpVersion: '1.1' })
    for (const [name, value] of headers) {
      message.rawHeaders.push(name, value)
      message.headers[name] = value
    }
    const response = this.#response(message, user, gateway.name)
    const snapshot = gateway.snapshots.enter()
    const known = { id: 'id', startedAt: 0, address: '192.0.2.1', target: BASE + path }
    const exchange = beginExchange(message, response, known, snapshot)
    response.once('close', () => exchange.snapshot.release())
    const classified = await snapshot.pipeline.admit(message, exchange)
    if (!('outcome' in classified)) return void response.end()
    const proceeding = snapshot.pipeline.complete(classified, message)
    if (body !== undefined) await this.scheduler.park('body comes', () => void message.push(Buffer.from(body)))
    message.push(null)
    message.complete = true
    const answer = await proceeding
    if (answer !== 'passed') response.end()
  }

  /** A response of which it is looked at what is written, when it is. */
  #response(message: IncomingMessage, user: string, gateway: string): ServerResponse {
    const response = new ServerResponse(message)
    const take = (chunk: unknown): void => {
      if (chunk === undefined) return
      for (const [, authors] of (chunk as string | Buffer).toString().matchAll(new RegExp(`${CONTENT}([a-z,]+);`, 'g')))
        this.#delivered(user, authors ?? '', gateway)
    }
    const over = (): void => {
      if (response.destroyed) return
      response.destroyed = true
      response.emit('close')
    }
    return Object.assign(response, {
      flushHeaders: () => {},
      writeHead: (status: number) => Object.assign(response, { statusCode: status }),
      write: (chunk: unknown) => {
        take(chunk)
        return true
      },
      end: (chunk?: unknown) => {
        take(chunk)
        Object.assign(response, { finished: true })
        response.emit('finish')
        over()
        return response
      },
      destroy: () => {
        over()
        return response
      },
    })
  }

  /** Looks at the table: who may use the thread now, whether its owner came by it rightly, and whether anything was lost. */
  async #look(step: string): Promise<void> {
    const [row] = await this.#tables.rows()
    this.#lost(this.#row, row)
    this.#row = row
    const owner = row === undefined ? null : row.owner.replace('corp:', '')
    for (const grantee of await this.#tables.grantees()) this.#access.set(grantee.replace('corp:', ''), this.scheduler.now)
    if (owner !== null) this.#access.set(owner, this.scheduler.now)
    const held = this.#runtime.content.join()
    // A tombstone that a run is reviving is not forgotten.
    if (row?.deleted === true && row.gone && !row.provisional && held !== '')
      this.#violated(`it counts as gone, and the runtime holds what ${held} wrote`)
    if (owner === this.#owner) return
    const isTransfer = this.#owner === 'alice' && owner === 'carol' && step.includes('transfer')
    if (this.#owner !== null && owner !== null && !isTransfer) this.#violated(`the owner became ${owner} by "${step}"`)
    this.#heir = isTransfer
    this.#owner = owner
    this.#inherits()
  }

  /** What the owner was told is theirs stays theirs until they delete it. */
  #lost(before: Row | undefined, now: Row | undefined): void {
    const held = this.#runtime.content.join()
    if (before === undefined || before.deleted) return
    if (now === undefined && (!before.provisional || held !== '')) this.#violated('a claim was lost')
    if (now?.provisional === true && !before.provisional) this.#violated('a claim is unconfirmed that was confirmed')
    const isDeleting = [...this.#begun.keys()].some(({ what }) => what === 'delete')
    if (now?.deleted === true && !isDeleting) this.#violated('a thread was deleted that nobody deletes')
  }

  /** Nobody who claims a thread that has no owner finds there what others wrote. */
  #inherits(): void {
    const others = this.#runtime.content.filter((author) => author !== this.#owner)
    if (this.#owner !== null && !this.#heir && others.length > 0)
      this.#violated(`${this.#owner} claimed what ${others.join()} wrote`)
  }

  #wrote(user: string): void {
    const until = this.#access.get(user) ?? -Infinity
    // A run that was permitted goes on; but the thread may be another's by then only by an operator's word.
    if (until === -Infinity) this.#violated(`${user} wrote without ever having had access`)
    this.#inherits()
  }

  #sent(user: string, what: string, letter: string, gateway: string): void {
    const foreign = this.#runtime.content.some((author) => author !== user)
    if (foreign && !this.#hasAccess(user, gateway)) this.#violated(`a ${what} of ${user} was sent without access`)
    const rules = this.#rules.get(firstName(gateway))
    if (rules === undefined || letter === rules.letter || letter === '') return
    if (this.scheduler.now - rules.since > PROMISED_MS)
      this.#violated(`a ${what} of ${user} was sent by a configuration that was replaced`)
  }

  #delivered(user: string, authors: string, gateway: string): void {
    if (authors !== '' && !this.#hasAccess(user, gateway)) this.#violated(`${user} was given what ${authors} wrote`)
  }

  /** Open answers are checked within the promised time, as soon as the store answers what it is asked for that. */
  #isChecking(): boolean {
    return this.scheduler.choices().some(({ name }) => /^(?:gateway|op) .* accessTo(?:Several)?(?::|$)/.test(name))
  }

  #hasAccess(user: string, gateway: string): boolean {
    if (this.#isChecking()) return true
    const { now } = this.scheduler
    if (user === 'bob') {
      const rules = this.#rules.get(firstName(gateway))
      if (rules !== undefined && now - rules.since > PROMISED_MS) return false
      if (this.#revokedAt !== null && now - this.#revokedAt > PROMISED_MS) return false
    }
    return now - (this.#access.get(user) ?? -Infinity) <= PROMISED_MS
  }

  #violated(what: string): void {
    this.violations.push(`${what}\n    ${this.steps.join('\n    ')}`)
  }
}

/** What follows the name of a gateway that has started again. */
const AGAIN = ' again'

/** The name that a gateway had before it started again. */
function firstName(name: string): string {
  return name.replace(AGAIN, '')
}
