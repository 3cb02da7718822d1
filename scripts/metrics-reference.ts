/** Writes docs/reference/metrics.md from the registered metrics, or with --check says whether it still fits. */
import { readFileSync, writeFileSync } from 'node:fs'
import { Registry } from 'prom-client'
import { makeMetrics } from '../src/observe/metrics.ts'

const PAGE = new URL('../docs/reference/metrics.md', import.meta.url)

const HEAD = `<!-- Written by scripts/metrics-reference.ts from src/observe/metrics.ts: change that, and run npm run metrics-reference. -->

# Metrics

This page lists every metric of the gateway. \`GET /metrics\` on the [health listener](../how-to/operate/health-and-readiness.md) answers in the Prometheus text format. [Monitor](../how-to/operate/monitor.md) says what to alert on.

No label has a value that a caller chose: no thread id, user id, target or header.`

interface Section {
  readonly title: string
  /** What the help text of a metric leaves out, by name. */
  readonly metrics: Readonly<Record<string, string>>
  readonly more?: string
}

const SECTIONS: readonly Section[] = [
  {
    title: 'Requests',
    metrics: {
      decisions_total:
        '`reason` is `permitted` or a [reason](errors.md#reasons). `route` is `none` if the gateway refused the request before it found a route. Permitted preflights are not counted.',
      upstream_errors_total: 'A failed history request of `unknownThread: verify` counts too.',
      claims_total: '`outcome` is `new`, `released` or `lost-race`. `new` includes a deleted thread that its owner uses again.',
      dropped_total: '`kind` is `body-key`, `nested-key` or `query-name`.',
      interrupt_answers_total:
        '`answer` is `approved`, `refused`, `cancelled` or `answered`, as in the [audit](audit.md#interrupts). `decision` is `permitted` or `refused`, by the gateway.',
      tokens_total:
        '`kind` is `reported` or `estimated`. What a [budget](../how-to/authorize/token-budgets.md) is charged beyond that for a run whose end was not seen is not in it.',
      request_duration_seconds: '',
      gateway_duration_seconds: 'Authentication, the store, limits and the decision are in it.',
      upstream_first_byte_seconds:
        "`status_class` is that of the upstream's answer. Requests without an answer are in `threadwarden_upstream_errors_total` only.",
      open_streams: '',
      stream_duration_seconds:
        '`reason` is `complete`, `caller-left`, `upstream-broke-off`, or the reason for which the gateway ended the stream, as in `ended` of [request lines](logs.md). A stream that the upstream had sent whole at its beginning does not count.',
      open_connections: 'Those with unfinished TLS handshakes count too.',
      connections_over_limit_total: '`outcome` is `idle-closed` or `refused`. See [connections](timeouts.md#connections).',
      tls_handshake_failures_total:
        '`reason` is `client-certificate`, `timeout`, `closed` (also by probes of a load balancer) or `protocol`.',
      memory_budget_used_bytes:
        '`use` is `bodies` (their bytes), `reading` (what reading them takes) or `answers` (answers that the gateway rewrites).',
      memory_budget_bytes:
        'The refusal is `bodies-budget-exhausted`. For `bodies` it is `limits.bodiesInFlight`, or less if the process has little memory.',
    },
    more: `### Durations

- \`status_class\` is \`1xx\` to \`5xx\`, or \`none\` if the caller left before the answer began.
- \`threadwarden_request_duration_seconds\` follows \`http.server.request.duration\` of OpenTelemetry: an event stream counts when it ends, with its whole duration. Select routes without streams for latency, or use \`threadwarden_gateway_duration_seconds\`.
- Where the gateway rewrites an answer, such as a list of threads, \`threadwarden_gateway_duration_seconds\` includes the time in which the upstream sends the body of that answer.
- Requests that the HTTP parser refuses have no duration. They count in \`threadwarden_decisions_total\`.`,
  },
  {
    title: 'Identity',
    metrics: {
      key_fetch_failures_total: 'Failed introspections of opaque tokens count too.',
      issuer_keys_stale: '',
      issuer_keys_fetched_timestamp_seconds: 'Missing for keys from files.',
    },
  },
  {
    title: 'Store',
    metrics: {
      store_operation_duration_seconds: '`engine` is `sqlite` or `postgres`. Answers from the access cache are not operations.',
      store_operation_errors_total: 'They are in the histogram too.',
      unconfirmed_claims:
        'The gateway counts them every 15 seconds. Gateways that share a store report the same number: do not add it up.',
      unconfirmed_claim_age_seconds: 'A claim stays unconfirmed if its run was interrupted and its user has not repeated it.',
    },
    more: `The values of \`operation\`:

- \`access\`: looks up the owner and the grants of threads.
- \`claim\`: claims a thread for a run, or notes that a run may write to it.
- \`settle\`: confirms or releases the claim after the upstream has answered.
- \`change\`: renames or archives a thread.
- \`delete\`: begins and ends the deletion of a thread.
- \`list\`: reads a list of threads from the ownership table.
- \`grant\`: reads and changes grants.
- \`observe\`: notes who used a thread in observe mode.
- \`revocation\`: reads and changes revocations, once a second or more.
- \`unconfirmed\`: counts unconfirmed claims, every 15 seconds.`,
  },
  {
    title: 'State and configuration',
    metrics: {
      build_info: '',
      readiness_pending:
        '`condition` is as in [/readyz](../how-to/operate/health-and-readiness.md): `upstream`, `keys:ISSUER`, `store`, `workers` and others. Each scrape checks the store, and waits for it for at most 2 seconds.',
      runtime_info:
        '`upstream` is the key under `upstreams`, and empty for `upstream`. `tested` is `yes`, `no`, `newer` (than the newest tested version of a [runtime](runtime-versions.md) or a [LangGraph server](supported-versions.md)) or `unknown`. Missing until the upstream has answered. A `version` that does not have the form of one is `unknown`.',
      config_reloads_total: '`outcome` is `reloaded`, `unchanged` or `refused`.',
      config_last_reload_successful: '',
      config_last_reload_success_timestamp_seconds: 'Reloads with the outcome `unchanged` count too.',
      config_generation: '',
      certificate_expiry_timestamp_seconds:
        '`certificate` is the settings that name it: `listen.tls`, `upstream.tls`. See [TLS](../how-to/deploy/tls.md#rotate-certificates).',
      observing: 'See [observe mode](../how-to/operate/observe-mode.md).',
      would_refuse_total: '',
      shadow_policy: 'See [shadow policy](../how-to/operate/shadow-policy.md).',
      shadow_differences_total:
        '`enforced` and `shadow` are `permitted` or a reason. `shadow` is `undecided` if the shadow policy needs the thread and the body was not read, and `failed` if its evaluation failed.',
    },
  },
  { title: 'Audit', metrics: { audit_lines_total: '', audit_lost_total: '' } },
]

const TAIL = `## Node.js

The default metrics of [prom-client](https://github.com/siimon/prom-client#default-metrics) are there too. Their names start with \`process_\` or \`nodejs_\`. The delay of the event loop is \`nodejs_eventloop_lag_p99_seconds\`.

## With several workers

With [\`workers\`](../how-to/operate/several-cores.md), one endpoint reports all workers:

- Counters, histograms and memory are added. The counts of a worker that exited stay.
- Gauges of a state report the worst value: \`threadwarden_observing\` is 1 if it is 1 in any worker, \`threadwarden_config_last_reload_successful\` is 0 if it is 0 in any worker.
- Only the primary process counts unconfirmed claims.
- \`process_start_time_seconds\` is missing.`

const PREFIX = 'threadwarden_'

/** What the library keeps of a metric. Its types leave out the labels. */
interface Registered {
  readonly name: string
  readonly help: string
  readonly type: string
  readonly labelNames: readonly string[]
}

async function registered(): Promise<ReadonlyMap<string, Registered>> {
  const registry = new Registry()
  const figures = await makeMetrics(registry).figures()
  const own = figures.filter(({ name }) => name.startsWith(PREFIX))
  return new Map(
    own.map(({ name, help, type }): [string, Registered] => {
      const { labelNames } = registry.getSingleMetric(name) as unknown as Pick<Registered, 'labelNames'>
      return [name, { name, help, type: String(type), labelNames }]
    }),
  )
}

function rowOf({ name, help, type, labelNames }: Registered, note: string): string {
  const labels = labelNames.map((label) => `\`${label}\``).join(', ')
  return `| \`${name}\` | ${type} | ${labels}${labels === '' ? '' : ' '}| ${help}${note === '' ? '' : ` ${note}`} |`
}

async function pageText(): Promise<string> {
  const all = await registered()
  const named = new Set(SECTIONS.flatMap(({ metrics }) => Object.keys(metrics).map((name) => PREFIX + name)))
  const missing = [...new Set([...all.keys(), ...named])].filter((name) => !all.has(name) || !named.has(name))
  if (missing.length > 0)
    throw new Error(`in scripts/metrics-reference.ts or in src/observe/metrics.ts only: ${missing.join(', ')}`)
  const sections = SECTIONS.map(({ title, metrics, more }) => {
    const rows = Object.entries(metrics).map(([name, note]) => rowOf(all.get(PREFIX + name) as Registered, note))
    const table = ['| Metric | Type | Labels | Meaning |', '| --- | --- | --- | --- |', ...rows].join('\n')
    return [`## ${title}`, table, ...(more === undefined ? [] : [more])].join('\n\n')
  })
  return `${[HEAD, ...sections, TAIL].join('\n\n')}\n`
}

const text = await pageText()
if (!process.argv.includes('--check')) writeFileSync(PAGE, text)
else if (readFileSync(PAGE, 'utf8') !== text) {
  process.stderr.write('docs/reference/metrics.md does not fit its source: run npm run metrics-reference\n')
  process.exitCode = 1
}
