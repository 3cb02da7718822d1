/** Log lines for people at a terminal. A terminal obeys nothing in them: callers choose ids and names. */
import { styleText } from 'node:util'
import { terminalJson } from '../core/json/terminal-json.ts'

type Style = 'bold' | 'dim' | 'green' | 'red' | 'yellow'

const LEVELS: Readonly<Record<string, Style>> = { fatal: 'red', error: 'red', warn: 'yellow', info: 'green' }

/** Values that need no quotes to be read as one. */
const PLAIN = /^[\w:./@+~-]+$/

/**
 * @param entry a line of JSON
 * @param colours a terminal may not have them (NO_COLOR, TERM)
 */
export function prettyLine(entry: string, colours: 'colours' | 'plain'): string {
  const paint = (style: Style, text: string): string =>
    colours === 'plain' ? text : styleText(style, text, { validateStream: false })
  const { level, time, msg, err, method, route, status, reason, ...others } = JSON.parse(entry) as Readonly<
    Record<string, unknown>
  >
  const what = msg === 'request' ? [method, route, status, reason].filter((one) => one !== undefined).map(String) : [String(msg)]
  const head = [
    paint('dim', oneLine(String(time).slice(11, 23))),
    paint(LEVELS[String(level)] ?? 'dim', oneLine(String(level).padEnd(5))),
    paint('bold', oneLine(what.join(' '))),
  ]
  const rest = msg === 'request' ? others : { method, route, status, reason, ...others }
  const fields = Object.entries(rest)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${paint('dim', `${oneLine(name)}=`)}${valueText(value)}`)
  return `${[...head, ...fields].join(' ')}\n${err === undefined ? '' : `${errorText(err)}\n`}`
}

/** A line end in a value would make a line of its own. */
function oneLine(text: string): string {
  return terminalJson(text).replaceAll('\n', String.raw`\n`)
}

function valueText(value: unknown): string {
  return typeof value === 'string' && PLAIN.test(value) ? value : terminalJson(JSON.stringify(value))
}

/** The stack, in lines of its own. */
function errorText(error: unknown): string {
  const { stack } = error as { readonly stack?: unknown }
  const text = typeof stack === 'string' ? stack : JSON.stringify(error)
  return text
    .split('\n')
    .map((line) => `    ${oneLine(line.trim())}`)
    .join('\n')
}
