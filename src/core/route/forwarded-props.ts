/** The allow-list of `forwardedProps` (runtime-behaviour.md, "What the runtime does not check"; docs/reference/policy.md). */
import { isObject, type Json, type JsonObject } from '../json/read.ts'

export const BUILT_IN_PROPS: readonly string[] = ['toolChoice', 'command.resume']

// oxfmt-ignore
const UNSAFE_NAMES = new Set([
  'config', 'context', 'webhook', 'metadata', 'threadmetadata', 'nodename', 'multitaskstrategy', 'oncompletion',
  'ondisconnect', 'afterseconds', 'ifnotexists', 'feedbackkeys', 'durability', 'proxiedmcprequest', 'command',
  // Python agents merge forwarded properties into the input of a graph.
  'input', 'messages', 'state', 'tools', 'copilotkit', 'ag-ui',
])
const UNSAFE_PREFIXES = ['checkpoint', 'interrupt', 'stream', 'command.']

/** Names are compared without case and underscores: Python agents turn camelCase into snake_case on their own. */
export function foldedName(name: string): string {
  return name.toLowerCase().replaceAll('_', '')
}

/** True for a top-level name or `command.x` that reaches an agent's configuration, context, webhook, metadata or node choice. */
export function isUnsafeProp(name: string): boolean {
  if (BUILT_IN_PROPS.includes(name)) return false
  const folded = foldedName(name)
  return UNSAFE_NAMES.has(folded) || UNSAFE_PREFIXES.some((prefix) => folded.startsWith(prefix))
}

/** @returns the same value if all of it passes, and the dropped names */
export function filterForwardedProps(
  value: Json,
  allowed: ReadonlySet<string>,
): { readonly kept: JsonObject; readonly dropped: readonly string[] } {
  if (!isObject(value)) return { kept: {}, dropped: value === null ? [] : ['forwardedProps'] }
  const passes = (name: string): boolean => BUILT_IN_PROPS.includes(name) || allowed.has(name)
  const kept: Record<string, Json> = {}
  const dropped: string[] = []
  for (const [name, part] of Object.entries(value)) {
    // `command.resume` names a part of `command`, not a property with that spelling.
    if (passes(name) && !name.startsWith('command.')) kept[name] = part
    else if (name === 'command' && isObject(part)) {
      const inner = Object.entries(part)
      const passing = inner.filter(([key]) => passes(`command.${key}`))
      if (passing.length > 0) kept['command'] = passing.length === inner.length ? part : Object.fromEntries(passing)
      for (const [key] of inner) if (!passes(`command.${key}`)) dropped.push(`command.${key}`)
    } else dropped.push(name)
  }
  const isAll = Object.keys(value).every((name) => kept[name] === value[name])
  return { kept: isAll ? value : kept, dropped }
}
