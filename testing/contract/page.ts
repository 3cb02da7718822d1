/** docs/reference/runtime-versions.md, of the recorded contracts. */
import { CLOSED, INFO_FIELDS, nameOf, type Treatment } from './known.ts'
import type { RuntimeContract } from './facts.ts'

const HEAD = `<!-- Written by npm run contract -- --record from the tested runtimes: run it, don't edit. -->

# Runtime versions

This page lists what each tested version of the runtime takes and gives. [A new runtime version](../how-to/operate/new-runtime-version.md) says what to do if yours is not listed.

The [contract tests](../../test/contract) start each of these versions, alone and behind the gateway. \`npm run contract\` reads the tables from the installed packages. [Supported versions](supported-versions.md) says how the gateway handles the differences.`

const TREATMENTS: Readonly<Record<Treatment, string>> = {
  read: 'The gateway reads it, and forwards it.',
  rewritten: 'The gateway reads it, and writes it as it fits the client.',
  passed: 'The gateway forwards it.',
}

const list = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(', ')

/** Names of the fields and rules that tell versions apart. */
function traitsOf({
  routes,
  envelopeMethods,
  infoFields,
}: RuntimeContract): readonly (readonly [what: string, names: readonly string[]])[] {
  return [
    ['routes', routes.map(nameOf)],
    ['envelope methods', envelopeMethods],
    ['body keys', routes.flatMap((route) => route.bodyKeys.map((key) => `${key} of ${nameOf(route)}`))],
    ['`/info`', infoFields],
  ]
}

function differences(now: RuntimeContract, before: RuntimeContract | undefined): string {
  if (before === undefined) return ''
  const earlier = new Set(before.routes.map(nameOf))
  const isOld = (name: string): boolean => !name.includes(' of ') || earlier.has(name.slice(name.indexOf(' of ') + 4))
  const parts = traitsOf(now).flatMap(([what, names], at) => {
    const known = traitsOf(before)[at]?.[1] ?? []
    // The keys of a new route are not told one by one.
    const added = names.filter((name) => !known.includes(name) && isOld(name))
    const removed = known.filter((name) => !names.includes(name))
    return [
      ...(added.length > 0 ? [`new ${what}: ${list(added)}`] : []),
      ...(removed.length > 0 ? [`without ${what}: ${list(removed)}`] : []),
    ]
  })
  if (now.headers.winner !== before.headers.winner) parts.push(`the headers of the ${now.headers.winner} win`)
  if (now.headers.withheld.length > 0 && before.headers.withheld.length === 0)
    parts.push('some `x-*` headers of callers do not reach agents')
  return parts.length === 0 ? 'nothing' : parts.join('; ')
}

export function renderPage(contracts: readonly RuntimeContract[]): string {
  const oldest = contracts[0]
  const newest = contracts.at(-1)
  if (oldest === undefined || newest === undefined) throw new Error('no runtime is recorded')
  const versions = contracts.map(
    (one, at) =>
      `| ${one.version} | \`${one.package}\` | ${one.agUi} | ${one.routes.length} | ${one.envelopeMethods.length} | ${one.headers.winner} | ${differences(one, contracts[at - 1])} |`,
  )
  const since = (has: (one: RuntimeContract) => boolean): string => contracts.find(has)?.version ?? ''
  const routes = newest.routes.map((route) => {
    const name = nameOf(route)
    const keys = list(route.bodyKeys)
    return `| \`${name}\` | ${since((one) => one.routes.some((other) => nameOf(other) === name))} | ${route.isTunnelled ? 'yes' : 'no'} | ${keys} |`
  })
  const methods = newest.envelopeMethods.map((name) => `| \`${name}\` | ${since((one) => one.envelopeMethods.includes(name))} |`)
  const fields = newest.infoFields.map(
    (name) => `| \`${name}\` | ${since((one) => one.infoFields.includes(name))} | ${TREATMENTS[INFO_FIELDS[name] ?? 'passed']} |`,
  )
  const closed = CLOSED.map(
    ({ routes: names, key, why }) => `| ${list(names)} | ${key === '*' ? 'other keys' : `\`${key}\``} | ${why} |`,
  )
  return `${HEAD}

## Versions

AG-UI is the version of \`@ag-ui/core\` that the runtime depends on. The next two columns count its routes and the methods of its envelopes. "Headers" says whose header reaches a remote agent if the caller and the agent's configuration both have it. The last column compares with the row above.

| Version | Package | AG-UI | Routes | Envelope methods | Headers | Changes |
| --- | --- | ---: | ---: | ---: | --- | --- |
${versions.join('\n')}

## Routes

These are the routes of ${newest.version}. The second column has the first tested version with the route. "Tunnel" says whether \`resource/request\` envelopes carry it.

| Route | Since | Tunnel | Body keys that it reads |
| --- | --- | --- | --- |
${routes.join('\n')}

## Envelope methods

| Method | Since |
| --- | --- |
${methods.join('\n')}

## Fields of /info

| Field | Since | Through the gateway |
| --- | --- | --- |
${fields.join('\n')}

## What the gateway does not forward

The runtime takes these, and the gateway drops them. No setting forwards them.

| Route | Body key | Reason |
| --- | --- | --- |
${closed.join('\n')}

A route that the gateway does not know is 404, and a method of an envelope that it does not know is 404. It drops every other body key, and forwards no headers but those of [the table](headers.md).

## Headers that reach agents

| Version | Forwarded to agents | Withheld |
| --- | --- | --- |
${contracts
  .filter((one, at) => at === 0 || JSON.stringify(one.headers) !== JSON.stringify(contracts[at - 1]?.headers))
  .map((one) => `| from ${one.version} | ${list(one.headers.forwarded)} | ${list(one.headers.withheld)} |`)
  .join('\n')}

The runtime withholds more headers than these: the table has those whose names are in its source.
`
}
