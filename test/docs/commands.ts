/**
 * Runs the commands of a page as printed, in one temporary folder, and compares what they print with the block below them.
 *
 * A page is written for this harness as follows:
 *
 * - A block ```sh is run by `bash -e`. Variables and the current folder last until the end of the page.
 * - A block ```console has commands after `$ `, each with its output below it.
 * - A block ```text or ```json that follows ```sh in the same section is its output. `…` is any text in a line, and any number of
 *   lines where it is the whole line.
 * - A block of any other kind is written to a file if the paragraph above it ends with a colon and tells the reader to write, save,
 *   create, put or replace a file in backticks: "Write `threadwarden.yaml`:". "Add to `threadwarden.yaml`:" (append, change, set)
 *   merges YAML into the file; a list is added to the `rules` of a policy, at their start if the paragraph says "first".
 * - A block whose command is a server (`threadwarden serve`) runs until the page is over, or until the page starts it again. The
 *   harness waits until it is ready. `threadwarden serve … &` works as well.
 *
 * Ports are replaced: 8080 and 8081, the defaults, always, others if the test names them. `threadwarden` and `node dist/cli.js` are
 * the program of this checkout.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, cpSync, existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Test } from 'tap'
import { isMap, isSeq, parse, parseDocument } from 'yaml'
import { makeFolder } from '../../testing/support/gateway.ts'
import { freePort } from '../../testing/support/free-port.ts'
import { until } from '../../testing/support/until.ts'
import { page as pageNamed, ROOT, type Page } from './markdown.ts'

/** A fenced block of a page. */
export interface Block {
  /** The words after the fence: `sh`, `yaml tests`. */
  readonly info: string
  readonly code: string
  /** The line of the page at which its text begins. */
  readonly line: number
  /** The heading of level 2 above it; '' before the first one. */
  readonly section: string
  /** The paragraph above it; '' if there is something else. */
  readonly paragraph: string
  /** How many headings of any level are above it. */
  readonly headings: number
}

/** What ran. */
export interface Ran {
  readonly block: Block
  readonly command: string
  /** Standard output and standard error as a terminal shows them, with the ports and the folder of the page. */
  readonly output: string
  readonly code: number | null
}

/** The page on its way. */
export interface Run {
  readonly folder: string
  /** The environment of the commands that follow; a test may add to it. */
  readonly env: Record<string, string>
  /** The port in use for each one that the page prints. */
  readonly ports: ReadonlyMap<number, number>
  readonly ran: readonly Ran[]
  /** The text as it is run or written: with other ports, and with what the test replaces. */
  readonly replaced: (text: string) => string
}

export interface CommandOptions {
  /** Where the commands run; by default a folder that goes with the test. */
  readonly folder?: string
  readonly env?: Readonly<Record<string, string>>
  /** Ports of the page besides 8080 and 8081: a list of those that get a free one, or each with the one in use. */
  readonly ports?: readonly number[] | Readonly<Record<number, number>>
  /** Texts of the page, like the address of an identity provider, and what is used in their place. */
  readonly replace?: Readonly<Record<string, string>>
  /** Files that the page takes for granted. */
  readonly files?: Readonly<Record<string, string>>
  /** The folder as the page shows it in outputs. */
  readonly shown?: string
  /** Exit codes other than 0, by a part of the command. */
  readonly exits?: Readonly<Record<string, number>>
  /** What else varies in outputs, and what is compared in its place. */
  readonly varying?: readonly (readonly [RegExp, string])[]
  /** Commands that run until the page is over, and what they print when they are ready. */
  readonly servers?: readonly (readonly [RegExp, RegExp])[]
  /** What a gateway is waited for: that it is ready, or only that it listens. */
  readonly wait?: 'ready' | 'listening'
  /** Called before each block, also before one that is written to a file. */
  readonly before?: (block: Block, run: Run) => void | Promise<void>
  /** Called after each block, when it has run or was written. */
  readonly after?: (block: Block, run: Run) => void | Promise<void>
}

/** The blocks of a page, in their order. A fence may be indented, as in a list. */
export function blocksOf({ text }: Page): readonly Block[] {
  const found: Block[] = []
  let section = ''
  let headings = 0
  let above: string[] = []
  let open: { readonly indent: string; readonly info: string; readonly line: number; readonly lines: string[] } | null = null
  for (const [at, line] of text.split('\n').entries()) {
    const [, indent = '', info = ''] = /^( *)```(.*)$/.exec(line) ?? []
    const isFence = /^ *```/.test(line)
    if (open !== null) {
      if (!isFence || info !== '') {
        open.lines.push(line.startsWith(open.indent) ? line.slice(open.indent.length) : line)
        continue
      }
      const paragraph = above.join(' ').trim()
      const code = open.lines.map((one) => `${one}\n`).join('')
      found.push({ info: open.info, code, line: open.line, section, paragraph, headings })
      open = null
      above = []
    } else if (isFence) {
      open = { indent, info: info.trim(), line: at + 2, lines: [] }
    } else if (/^#+ /.test(line)) {
      headings += 1
      if (line.startsWith('## ')) section = line.slice(3)
      above = []
    } else if (line.trim() !== '') {
      // A paragraph begins after an empty line.
      if (text.split('\n')[at - 1]?.trim() === '') above = []
      above.push(line.trim())
    }
  }
  return found
}

/** Whether the commands of a block are run as printed. */
export function isCommand({ info }: Block): boolean {
  return info === 'sh' || info === 'console'
}

/** The file that the paragraph above a block names, and whether the block is only a part of it. */
export function fileOf({ paragraph }: Block): { readonly name: string; readonly isPart: boolean } | null {
  const sentence = paragraph.split(/(?<=[.!?])\s+(?=[A-Z`])/).at(-1) ?? ''
  const names = Array.from(sentence.matchAll(/`((?:[\w-]+\/|\.\/)*[\w.-]+\.[a-z]+)`/g), ([, name = '']) => name)
  const [name] = names
  if (name === undefined || names.length > 1 || !sentence.endsWith(':')) return null
  if (/\b(?:add|append|change|set|insert)\b/i.test(sentence)) return { name, isPart: true }
  return /\b(?:write|save|create|put|replace)\b/i.test(sentence) || sentence.startsWith('`') ? { name, isPart: false } : null
}

/** What varies from one run to the next, and how it is compared. */
const VARYING: readonly (readonly [RegExp, string])[] = [
  [/\x1b\[[\d;]*m/g, ''],
  [/\beyJ[\w-]*(?:\.[\w-]+)*…?/g, '<token>'],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, '<uuid>'],
  [/\b\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)/g, '<time>'],
  [/\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} [\d:]+ GMT/g, '<time>'],
  [/"time": ?\d+/g, '"time":<time>'],
  [/\b\d{4}-\d\d-\d\d\b/g, '<date>'],
  [/"pid": ?\d+/g, '"pid":<pid>'],
  [/\b[0-9a-f]{16,}\b/g, '<hash>'],
  [/\b[0-9a-f]{4,}…/g, '…'],
  [/\b\d+(?:\.\d+)? ?ms\b|\b\d+\.\d+ ?s\b/g, '<duration>'],
]

function normalised(text: string, varying: CommandOptions['varying'] = []): string {
  const plain = [...varying, ...VARYING].reduce((all, [pattern, shown]) => all.replaceAll(pattern, shown), text)
  return plain.replaceAll(/[ \t]+$/gm, '').trim()
}

/** JSON in one layout; anything else as it is. */
function laidOut(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

/** The pattern of an output in which `…` may be anything. */
function patternOf(expected: string): RegExp {
  const lines = expected.split('\n').map((line) => {
    if (line.trim() === '…') return '(?:.*\\n)*?'
    const parts = line.split('…').map((part) => escaped(part))
    return `${parts.join('.*')}\\n`
  })
  return new RegExp(`^${lines.join('')}$`)
}

function isSameJson(actual: string, expected: string, varying: CommandOptions['varying']): boolean {
  const laid = laidOut(expected)
  return laid !== expected && patternOf(normalised(laid, varying)).test(`${normalised(laidOut(actual), varying)}\n`)
}

/** Whether a command printed what the page says, in any layout of JSON. */
export function isPrinted(actual: string, expected: string, varying?: CommandOptions['varying']): boolean {
  const fits = (printed: string): boolean => patternOf(normalised(expected, varying)).test(`${normalised(printed, varying)}\n`)
  return fits(actual) || fits(laidOut(actual)) || isSameJson(actual, expected, varying)
}

function compare(t: Test, name: string, actual: string, expected: string, varying: CommandOptions['varying']): void {
  if (isPrinted(actual, expected, varying)) t.pass(name)
  else t.equal(normalised(actual, varying), normalised(expected, varying), name)
}

async function portsOf(asked: CommandOptions['ports'] = []): Promise<ReadonlyMap<number, number>> {
  const given = Array.isArray(asked) ? [] : Object.entries(asked).map(([port, used]) => [Number(port), used] as const)
  const ports = new Map(given)
  for (const port of [8080, 8081, ...(Array.isArray(asked) ? (asked as readonly number[]) : [])]) {
    if (!ports.has(port)) ports.set(port, await freePort())
  }
  return ports
}

const escaped = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)

/** Replaces texts; none of them is replaced inside of what another one became. */
function replacer(pairs: readonly (readonly [string | RegExp, string])[]): (text: string) => string {
  if (pairs.length === 0) return (text) => text
  const sources = pairs.map(([from]) => (typeof from === 'string' ? escaped(from) : from.source))
  const pattern = new RegExp(sources.map((source) => `(${source})`).join('|'), 'g')
  return (text) =>
    text.replaceAll(
      pattern,
      (whole, ...groups) => pairs[groups.slice(0, pairs.length).findIndex((one) => one === whole)]?.[1] ?? whole,
    )
}

const number = (value: number): RegExp => new RegExp(`(?<![\\d.])${value}(?![\\d])`)

/** The ready-made servers: a gateway. */
const SERVERS: NonNullable<CommandOptions['servers']> = [[/^(?:threadwarden|node dist\/cli\.js) serve\b/, /"msg":"listening"/]]

/** What the shell keeps of a block for the next one. */
const PROLOGUE = `
kept=$1; block=$2
keep() {
  for name in $(compgen -v); do
    case $name in BASH*|kept|block|name|PPID|EUID|UID|SHELLOPTS|FUNCNAME|DIRSTACK|GROUPS|PIPESTATUS|_|SHLVL|IFS|OPT*|LINENO|RANDOM|SRANDOM|SECONDS|EPOCH*) continue ;; esac
    case $(declare -p "$name" 2>/dev/null) in 'declare -- '*|'declare -x '*) declare -p "$name" ;; esac
  done > "$kept"
  printf 'cd %q\\n' "$PWD" >> "$kept"
}
trap keep EXIT
if [ -e "$kept" ]; then . "$kept"; fi
exec 2>&1
set -e
. "$block"
`

/** A shell of which each block is a process of its own, and whose variables last. */
class Shell {
  readonly #t: Test
  readonly #folder: string
  readonly #tools: string
  readonly #env: Record<string, string>
  #blocks = 0

  constructor(t: Test, folder: string, tools: string, env: Record<string, string>) {
    this.#t = t
    this.#folder = folder
    this.#tools = tools
    this.#env = env
  }

  /** Starts a block; what it starts ends with the test. */
  start(code: string): { readonly child: ChildProcess; readonly output: () => string } {
    this.#blocks += 1
    const block = join(this.#tools, `block-${this.#blocks}.sh`)
    writeFileSync(block, code)
    const path = [this.#tools, dirname(process.execPath), process.env['PATH'] ?? ''].join(delimiter)
    const child = spawn('bash', ['-c', PROLOGUE, 'bash', join(this.#tools, 'kept'), block], {
      cwd: this.#folder,
      env: {
        PATH: path,
        HOME: this.#folder,
        // By default npm keeps its logs below HOME, which may be this repository.
        npm_config_cache: join(this.#tools, 'npm'),
        TZ: 'UTC',
        NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
        ...this.#env,
      },
      stdio: ['ignore', 'pipe', 'ignore'],
      // A process group of its own, which programs in the background belong to as well.
      detached: true,
    })
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (piece: string) => void (output += piece))
    this.#t.teardown(() => end(child))
    return { child, output: () => output }
  }
}

/** Ends a block and what it left in the background. */
async function end(child: ChildProcess): Promise<void> {
  const isOver = child.stdout === null || child.stdout.closed
  const closed = isOver ? null : once(child, 'close')
  try {
    process.kill(-(child.pid ?? 0), 'SIGKILL')
  } catch {
    // The group has no process left.
  }
  await closed
}

/** Runs the blocks of a page, or of some of its sections, in their order. */
async function runSome(t: Test, one: Page, isAsked: (block: Block) => boolean, options: CommandOptions): Promise<Run> {
  const { folder, remove } = options.folder === undefined ? makeFolder('on disk') : { folder: options.folder, remove: () => {} }
  const tools = makeFolder()
  t.teardown(() => {
    remove()
    tools.remove()
  })
  prepareFolders(folder, tools.folder)
  const ports = await portsOf(options.ports)
  const texts = Object.entries(options.replace ?? {})
  const replaced = replacer([...texts, ...Array.from(ports, ([printed, used]) => [number(printed), String(used)] as const)])
  const folders = [...new Set([realpathSync(folder), folder])].map((path) => [path, options.shown ?? '/srv/chat'] as const)
  const asPrinted = replacer([
    ...folders,
    ...texts.map(([printed, used]) => [used, printed] as const),
    ...Array.from(ports, ([printed, used]) => [number(used), String(printed)] as const),
  ])
  const env: Record<string, string> = { ...options.env }
  const ran: Ran[] = []
  const run: Run = { folder, env, ports, ran, replaced }
  for (const [name, text] of Object.entries(options.files ?? {})) write(folder, name, replaced(text))
  const shell = new Shell(t, folder, tools.folder, env)
  const started = new Map<string, ChildProcess>()
  const exits = new Map(Object.entries(options.exits ?? {}))
  const unused = new Set(exits.keys())

  const runCommand = async (block: Block, command: string, expected: string | null): Promise<void> => {
    const name = `${one.name}:${block.line}: ${command.trim().split('\n')[0]}`
    completeConfig(folder, ports)
    const commands = command.trim().replaceAll('\\\n', '').split('\n')
    const server = [...(options.servers ?? []), ...SERVERS].find(([pattern]) => commands.some((line) => pattern.test(line)))
    const again = started.get(command)
    if (again !== undefined) await end(again)
    // A server does not end by itself, so the shell keeps its variables before.
    const kept = server === undefined ? command : command.replace(new RegExp(server[0].source, 'm'), (start) => `keep\n${start}`)
    const { child, output } = shell.start(replaced(kept))
    let code: number | null = null
    if (server === undefined) {
      ;[code] = (await once(child, 'close')) as [number | null]
    } else {
      started.set(command, child)
      await until(() => {
        if (child.exitCode !== null && child.exitCode !== 0) throw new Error(`${name} ended: ${output()}`)
        return server[1].test(output())
      })
      if (options.wait !== 'listening') await ready(output())
      // A block with `&` goes on at once; what it says after the server has started belongs to it.
      if (/&\s*(?:$|\n)/.test(command) && child.exitCode === null) await once(child, 'exit')
    }
    const printed = asPrinted(output())
    ran.push({ block, command, output: printed, code })
    const exit = [...exits].find(([part]) => command.includes(part))
    if (exit !== undefined) unused.delete(exit[0])
    if (server === undefined) t.equal(code, exit?.[1] ?? 0, `exit code of ${name}`, { output: printed })
    if (expected !== null) {
      const shown = server === undefined ? expected : `${expected.trimEnd()}\n…\n`
      compare(t, `output of ${name}`, printed, shown, options.varying)
    }
  }

  const all = blocksOf(one)
  for (const [at, block] of all.entries()) {
    if (!isAsked(block)) continue
    await options.before?.(block, run)
    const next = all[at + 1]
    if (block.info === 'console') {
      for (const { command, output } of exchanges(block.code)) await runCommand(block, command, output)
    } else if (block.info === 'sh') {
      await runCommand(block, block.code, next !== undefined && isOutput(block, next) ? next.code : null)
    } else {
      const before = all[at - 1]
      const file = before !== undefined && isOutput(before, block) ? null : fileOf(block)
      if (file !== null) {
        const text = replaced(block.code)
        if (file.isPart) merge(folder, file.name, text, /\bfirst\b/.test(block.paragraph))
        else write(folder, file.name, text)
      }
    }
    await options.after?.(block, run)
  }
  t.same([...unused], [], 'every exit code belongs to a command')
  return run
}

/** Whether a block is what the commands of the one before it print. */
function isOutput(commands: Block, block: Block): boolean {
  const isKind = block.info === 'text' || block.info === 'json'
  return isKind && commands.info === 'sh' && commands.headings === block.headings && fileOf(block) === null
}

/** The commands of a ```console block, each with what it prints; null where the block shows nothing. */
function exchanges(code: string): readonly { readonly command: string; readonly output: string | null }[] {
  return code
    .split(/^\$ /m)
    .slice(1)
    .map((text) => {
      const [command = ''] = /^(?:.*\\\n)*.*\n/.exec(text) ?? []
      const output = text.slice(command.length)
      return { command, output: output.trim() === '' ? null : output }
    })
}

/** The folder looks like a checkout, and the program is on the path. */
function prepareFolders(folder: string, tools: string): void {
  const program = join(ROOT, 'src/cli.ts')
  symlinkSync(process.execPath, join(tools, 'node'))
  writeFileSync(join(tools, 'threadwarden'), `#!/bin/sh\nexec "${process.execPath}" "${program}" "$@"\n`, { mode: 0o755 })
  mkdirSync(join(folder, 'dist'), { recursive: true })
  if (!existsSync(join(folder, 'package.json'))) writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n')
  writeFileSync(join(folder, 'dist/cli.js'), `await import(${JSON.stringify(pathToFileURL(program).href)})\n`)
  if (!existsSync(join(folder, 'policies'))) cpSync(join(ROOT, 'policies'), join(folder, 'policies'), { recursive: true })
}

function write(folder: string, name: string, text: string): void {
  mkdirSync(dirname(join(folder, name)), { recursive: true })
  writeFileSync(join(folder, name), text)
}

/** Adds to a file as a reader does: keys to the mapping that has them, rules to the list of rules. */
function merge(folder: string, name: string, text: string, isFirst: boolean): void {
  const file = join(folder, name)
  if (!/\.ya?ml$/.test(name)) {
    appendFileSync(file, text)
    return
  }
  const document = parseDocument(existsSync(file) ? readFileSync(file, 'utf8') : '{}')
  const added = parse(text) as unknown
  if (Array.isArray(added)) {
    const rules = document.get('rules')
    if (!isSeq(rules)) throw new Error(`${name} has no list of rules to which a rule can be added`)
    const nodes = added.map((item) => document.createNode(item))
    rules.items.splice(isFirst ? 0 : rules.items.length, 0, ...nodes)
  } else {
    mergeKeys(document, [], added)
  }
  writeFileSync(file, document.toString())
}

function mergeKeys(document: ReturnType<typeof parseDocument>, path: readonly string[], value: unknown): void {
  const isBranch = typeof value === 'object' && value !== null && !Array.isArray(value)
  if (isBranch && (path.length === 0 || isMap(document.getIn(path)))) {
    for (const [key, inner] of Object.entries(value)) mergeKeys(document, [...path, key], inner)
  } else {
    document.setIn(path, document.createNode(value))
  }
}

/** The listeners of the default ports get the ports in use, where a page leaves them out of the configuration. */
function completeConfig(folder: string, ports: ReadonlyMap<number, number>): void {
  const file = join(folder, 'threadwarden.yaml')
  if (!existsSync(file)) return
  const text = readFileSync(file, 'utf8')
  const lines = [
    ['listen', 8080],
    ['health', 8081],
  ] as const
  for (const [key, port] of lines) {
    if (!new RegExp(`^${key}:`, 'm').test(text)) {
      appendFileSync(file, `${key}: { host: 127.0.0.1, port: ${ports.get(port)} }\n`)
    }
  }
}

/** Waits until the gateway that says where it listens is ready. */
async function ready(output: string): Promise<void> {
  const [line] = output.split('\n').filter((one) => one.includes('"msg":"listening"'))
  if (line === undefined) return
  const { health } = JSON.parse(line) as { readonly health?: string }
  if (health !== undefined) await until(async () => (await fetch(`${health}/readyz`)).ok)
}

const of = (one: string | Page): Page => (typeof one === 'string' ? pageNamed(one) : one)

/** Runs every command of a page. `commands-covered.test.ts` finds the name of the page in the call: it is a literal. */
export function runBlocks(t: Test, one: string | Page, options: CommandOptions = {}): Promise<Run> {
  return runSome(t, of(one), () => true, options)
}

/** Runs the commands of one section of a page, below a heading of level 2. Page and heading are literals. */
export function runSection(t: Test, one: string | Page, heading: string, options: CommandOptions = {}): Promise<Run> {
  const whole = of(one)
  if (!blocksOf(whole).some(({ section }) => section === heading)) throw new Error(`${whole.name}: no block below "${heading}"`)
  return runSome(t, whole, ({ section }) => section === heading, options)
}
