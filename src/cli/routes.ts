/** `threadwarden routes`: lists every route, and who may use it. */
import { mountsOf } from '../config/mounts.ts'
import type { Prepared } from '../snapshot/load.ts'
import { GRANTED, relationText, ruleText } from '../tools/simulate/decision-text.ts'
import { alwaysClosed, routesOf, type Access, type ClosedRoute, type RouteAccess } from '../tools/simulate/routes.ts'
import { loadConfig } from './input-files.ts'
import { largest } from '../core/json/extremes.ts'
import { CONFIG, defineCommand, EXIT, jsonFlag } from './command.ts'
import { harmless, paintFor, printData, printLines, type Paint } from './terminal.ts'

export const command = defineCommand({
  about: `Lists every route with its method and public path, who may use it on which threads, and the rule that allows or denies it. No
caller may use a closed route. The gateway answers 404 on any other path, and 403 on routes of a LangGraph server that no policy can
open.`,
  options: { config: CONFIG, json: jsonFlag('{"routes", "operators", "policy", …}') },
  exitCodes: { 0: 'listed', 1: 'invalid configuration' },
  examples: ['threadwarden routes', 'threadwarden routes --json'],

  run(values, terminal) {
    const prepared = loadConfig(terminal, values)
    const listed = routesOf(prepared.config, prepared.policy)
    if (values.json) printData(terminal, asData(prepared, listed))
    else printLines(terminal, text(prepared, listed, paintFor(terminal.stdout, terminal.env)))
    return EXIT.fine
  },
})

function asData({ config, policy }: Prepared, listed: readonly RouteAccess[]): object {
  const mounts = mountsOf(config)
  return {
    mode: config.authentication.mode,
    enforcement: config.enforcement,
    unknownThread: config.ownership.unknownThread,
    userScoped: mounts[0].userScoped,
    sharing: policy.rules.sharing,
    upstreams: mounts.map(({ key, scope, publicPath, unknownThread, userScoped }) => {
      return { key, scope, publicPath: publicPath || '/', unknownThread, userScoped }
    }),
    policy: { file: policy.file, hash: policy.hash },
    operators: policy.rules.operators,
    routes: listed,
    alwaysClosed: alwaysClosed(config),
  }
}

function text({ config, policy }: Prepared, listed: readonly RouteAccess[], paint: Paint): string {
  const operators = policy.rules.operators.map(({ issuer, role, permission }) =>
    [
      issuer,
      ...(role === undefined ? [] : [`role ${role}`]),
      ...(permission === undefined ? [] : [`permission ${permission}`]),
    ].join(' '),
  )
  const mounts = mountsOf(config)
  const several = mounts.length > 1
  const placeOf = (upstream: string): string => mounts.find((one) => one.key === upstream)?.place.join('.') ?? ''
  const width = largest(listed.map(({ path }) => path.length))
  return [
    `policy     ${harmless(policy.file)}`,
    `mode       ${config.authentication.mode}, enforcement ${config.enforcement}`,
    ...mounts.map(
      ({ place, unknownThread, userScoped }, at) =>
        `${at === 0 ? 'threads' : ''.padEnd(7)}    ${several ? `${place.join('.')}: ` : ''}unknownThread ${unknownThread}, userScoped ${userScoped}${at === 0 ? `, sharing ${policy.rules.sharing}` : ''}`,
    ),
    `operators  ${operators.length === 0 || config.authentication.mode === 'off' ? 'none' : operators.map(harmless).join('; ')}`,
    '',
    ...listed.flatMap(({ upstream, route, method, path, right, closed, hidden, access }, at) => [
      ...(several && upstream !== listed[at - 1]?.upstream
        ? [...(at === 0 ? [] : ['']), paint('dim', `# ${placeOf(upstream)}`)]
        : []),
      `${method.padEnd(6)} ${path.padEnd(width)}  ${paint(closed ? 'dim' : 'bold', route)}${closed ? paint('red', '  closed') : ''}${hidden ? '  (refused with 404)' : ''}`,
      ...access.map(
        (one) => `       ${paint(one.effect === 'allow' ? 'green' : 'red', one.effect)} ${harmless(accessText(one, right))}`,
      ),
    ]),
    ...closedLines(alwaysClosed(config), paint),
  ].join('\n')
}

function closedLines(closed: readonly ClosedRoute[], paint: Paint): readonly string[] {
  if (closed.length === 0) return []
  return [
    '',
    paint('dim', '# no policy can open these routes of a LangGraph server'),
    ...closed.map(({ method, path }) => `${method.padEnd(6)} ${path}`),
  ]
}

function accessText({ who, threads, agents, conditions, rule }: Access, right: RouteAccess['right']): string {
  const shared = right === null || right === 'owner' ? 'shared' : `shared (for ${GRANTED[right]})`
  return [
    who.join(', '),
    ...(threads === null
      ? []
      : [`on ${threads.map((one) => (one === 'shared' ? shared : relationText(one))).join(', ')} threads`]),
    ...(agents === null ? [] : [`agents ${agents.join(', ')}`]),
    ...(conditions.length === 0 ? [] : [conditions.join(', ')]),
    `by ${ruleText(rule)}`,
  ].join('; ')
}
