/** `threadwarden routes`: lists every route, and who may use it. */
import { mountsOf } from '../config/mounts.ts'
import type { Prepared } from '../snapshot/load.ts'
import { placeText } from '../tools/simulate/place.ts'
import { routesOf, type Access, type RouteAccess } from '../tools/simulate/routes.ts'
import { GRANTED } from '../tools/simulate/words.ts'
import { EXIT, printData, printLines, readOptions, type Command } from './command.ts'
import { loaded } from './input-files.ts'
import { harmless, paintFor, type Paint } from './terminal.ts'
import { largest } from '../core/json/extremes.ts'

export const routes: Command = {
  summary: 'lists the routes, and who may use them',
  help: `threadwarden routes --config FILE [--json]

Lists every route with its method and public path, who may use it on which threads, and the rule that says so. A route that
nobody may use is closed. What is not listed is answered 404.

  --config FILE  the configuration (YAML or JSON)
  --json         prints {"routes", "operators", "policy", …} on stdout

Exit codes: 0 listed, 1 an invalid configuration, 2 wrong usage.`,

  run(args) {
    const options = readOptions(args, { config: { type: 'string' }, json: { type: 'boolean' } })
    const json = options.json === true
    const prepared = loaded(options.config, json)
    if (prepared === null) return Promise.resolve(EXIT.failure)
    const { config, policy } = prepared
    const listed = routesOf(config, policy)
    if (json) {
      const { mode } = config.authentication
      const { enforcement } = config
      const { unknownThread } = config.ownership
      const upstreams = mountsOf(config).map(({ key, scope, publicPath, unknownThread, userScoped }) => ({
        key,
        scope,
        publicPath: publicPath || '/',
        unknownThread,
        userScoped,
      }))
      const [{ userScoped }] = mountsOf(config)
      const { sharing } = policy.rules
      const told = {
        mode,
        enforcement,
        unknownThread,
        userScoped,
        sharing,
        upstreams,
        policy: { file: policy.file, hash: policy.hash },
      }
      printData({ ...told, operators: policy.rules.operators, routes: listed })
    } else printLines(text(prepared, listed, paintFor(process.stdout, process.env)))
    return Promise.resolve(EXIT.fine)
  },
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
    `operators  ${operators.length === 0 || config.authentication.mode === 'off' ? 'nobody' : operators.map(harmless).join('; ')}`,
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
  ].join('\n')
}

function accessText({ who, threads, agents, conditions, rule }: Access, right: RouteAccess['right']): string {
  const shared = right === null || right === 'owner' ? 'shared' : `shared (for ${GRANTED[right]})`
  return [
    who.join(', '),
    ...(threads === null ? [] : [`on ${threads.map((one) => (one === 'shared' ? shared : one)).join(', ')} threads`]),
    ...(agents === null ? [] : [`agents ${agents.join(', ')}`]),
    ...(conditions.length === 0 ? [] : [conditions.join(', ')]),
    `by ${placeText(rule)}`,
  ].join('; ')
}
