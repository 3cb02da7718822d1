/** Reasons and codes that tutorials and how-tos name exist in src/core/reasons.ts. */
import { test } from 'tap'
import { CODES, REASONS } from '../../src/core/reasons.ts'
import { pages } from './markdown.ts'

/** Names of the same form that are no reasons. Request headers with `x-` are none either. */
const OTHERS = new Set([
  // The Service of the drop-in overlay.
  'chat-runtime-direct',
  // Agents that a policy names, and the audience of the examples.
  'any-other-agent',
  'agent-chat',
  // Reasons of `threadwarden/agent`, and a package.
  'scope-mismatch',
  'other-thread',
  'permission-denied',
  'fast-jwt',
  // Values of Sec-Fetch-Site.
  'same-origin',
  'same-site',
  'cross-site',
  // Values of upstream.transport, and a directive of a Content-Security-Policy.
  'multi-route',
  'single-route',
  'connect-src',
  // Folders of deploy/kubernetes, and names of objects and namespaces there.
  'drop-in',
  'gateway-api',
  'gateway-api-tls',
  'grafana-dashboard',
  'sidecar-tls',
  'threadwarden-ca',
  'chat-runtime',
  'chat-runtime-from-threadwarden-only',
  'ingress-nginx',
  'envoy-gateway-system',
  'threadwarden-metrics',
  // Volumes of deploy/compose.yaml, a directive of HAProxy, and a package of Debian.
  'postgres-data',
  'prometheus-data',
  'normalize-uri',
  'qemu-user-static',
  // A header of an answer.
  'content-location',
  // A secret, and the program that sends reports to systemd.
  'service-token',
  'systemd-notify',
])

const PAGES = pages().filter(({ name }) => /^docs\/(?:tutorials|how-to)\//.test(name))

void test('every reason and code that a page names exists', (t) => {
  const exists = (name: string): boolean => Object.hasOwn(REASONS, name) || Object.hasOwn(CODES, name)
  const unused = new Set(OTHERS)
  let found = 0
  for (const { name, text } of PAGES) {
    const prose = text.replaceAll(/^ *```[^]*?^ *```$/gm, '')
    const spans = Array.from(prose.matchAll(/`([a-z]+(?:-[a-z]+)+)`/g), ([, span = '']) => span)
    const data = Array.from(text.matchAll(/"(?:reason|wouldRefuse)": ?"([a-z-]+)"/g), ([, value = '']) => value)
    for (const one of [...spans, ...data.filter((value) => value !== 'permitted')]) {
      unused.delete(one)
      if (exists(one)) found += 1
      else t.ok(OTHERS.has(one) || one.startsWith('x-'), `${name} names ${one}`)
    }
  }
  t.ok(found > 30)
  t.same([...unused], [])
  t.end()
})
