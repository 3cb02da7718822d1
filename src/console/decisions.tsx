/** The last decisions with filters, and refusals by reason over the last hour. */
import { useState } from 'preact/hooks'
import { query, type Decision, type Minute } from './api.ts'
import { Fault, Field, Head, RuleText, Time, usePolled } from './parts.tsx'

interface Filters {
  readonly route: string
  readonly reason: string
  readonly user: string
  readonly thread: string
}

const NONE: Filters = { route: '', reason: '', user: '', thread: '' }

export function Decisions({ onExplain }: { readonly onExplain: (requestId: string) => void }) {
  const [filters, setFilters] = useState(NONE)
  const [paused, setPaused] = useState(false)
  const { answer, fault } = usePolled<{ readonly decisions: readonly Decision[] }>(`/decisions${query({ ...filters })}`, !paused)
  const { answer: counted } = usePolled<{ readonly minutes: readonly Minute[] }>('/decisions/minutes')
  const decisions = answer?.decisions ?? []
  const known = (of: (decision: Decision) => string | null | undefined): readonly string[] =>
    [...new Set(decisions.map(of))].filter((one) => typeof one === 'string').toSorted()
  const set = (name: keyof Filters) => (value: string) => setFilters((before) => ({ ...before, [name]: value }))
  return (
    <>
      <Refusals minutes={counted?.minutes ?? []} />
      <section>
        <h2>Decisions</h2>
        <form class="filters" onSubmit={(event) => event.preventDefault()}>
          <Field label="Route" value={filters.route} onChange={set('route')} list={known(({ route }) => route)} />
          <Field
            label="Reason"
            value={filters.reason}
            onChange={set('reason')}
            list={['refused', ...known(({ reason }) => reason)]}
          />
          <Field label="User" value={filters.user} onChange={set('user')} list={known(({ principal }) => principal?.id)} />
          <Field label="Thread" value={filters.thread} onChange={set('thread')} list={known(({ thread }) => thread)} />
          <button type="button" onClick={() => setFilters(NONE)}>
            Clear
          </button>
          <button type="button" aria-pressed={paused} onClick={() => setPaused(!paused)}>
            Pause
          </button>
        </form>
        <Fault text={fault} />
        <table>
          <Head names={['Time', 'User', 'Route', 'Thread', 'Reason', 'Rule', 'Request']} />
          <tbody>
            {decisions.map((one) => (
              <tr key={one.requestId}>
                <td>
                  <Time at={one.time} />
                </td>
                <td>{one.principal?.id ?? '–'}</td>
                <td>{one.route}</td>
                <td>{one.thread ?? '–'}</td>
                <td class={one.decision === 'refused' ? 'bad' : ''}>
                  {one.reason}
                  <Answers of={one.interrupts} />
                </td>
                <td>
                  <RuleText rule={one.rule} />
                </td>
                <td>
                  <button type="button" onClick={() => onExplain(one.requestId)} aria-label={`Explain ${one.requestId}`}>
                    Explain
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {answer !== null && decisions.length === 0 ? <p>No recent decision matches.</p> : null}
      </section>
    </>
  )
}

function Answers({ of }: { readonly of: Decision['interrupts'] }) {
  if (of === null) return null
  return <div title={of.map(({ id }) => id ?? 'no id').join(', ')}>interrupt: {of.map(({ answer }) => answer).join(', ')}</div>
}

const MINUTES = 60
const HEIGHT = 60
/** The classes of the style sheet that colour the most frequent reasons; others share the last. */
const COLOURS = 5

function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, one) => sum + one, 0)
}

function Refusals({ minutes }: { readonly minutes: readonly Minute[] }) {
  const sums = new Map<string, number>()
  for (const { refused } of minutes) {
    for (const [reason, count] of Object.entries(refused)) sums.set(reason, (sums.get(reason) ?? 0) + count)
  }
  const reasons = [...sums].toSorted(([, one], [, other]) => other - one)
  const colourOf = (reason: string): number =>
    Math.min(
      reasons.findIndex(([name]) => name === reason),
      COLOURS - 1,
    )
  const most = minutes.reduce((before, { refused }) => Math.max(before, sumOf(refused)), 1)
  const now = Math.floor(Date.now() / 60_000)
  return (
    <section>
      <h2>Refusals of the last hour</h2>
      {reasons.length === 0 ? (
        <p>None.</p>
      ) : (
        <>
          <svg
            viewBox={`0 0 ${MINUTES * 10} ${HEIGHT}`}
            class="bars"
            role="img"
            aria-label={`Refusals by minute, at most ${most}`}
          >
            {minutes.map(({ minute, refused }) => {
              const x = (MINUTES - 1 - (now - Math.floor(Date.parse(minute) / 60_000))) * 10
              let y = HEIGHT
              return reasons.flatMap(([reason]) => {
                const count = refused[reason] ?? 0
                if (count === 0) return []
                const height = (count / most) * HEIGHT
                y -= height
                return [
                  <rect key={`${minute} ${reason}`} x={x} y={y} width={8} height={height} class={`colour-${colourOf(reason)}`}>
                    <title>{`${new Date(minute).toLocaleTimeString()}: ${reason} ${count}`}</title>
                  </rect>,
                ]
              })
            })}
          </svg>
          <ul class="legend">
            {reasons.map(([reason, count]) => (
              <li key={reason}>
                <span class={`colour-${colourOf(reason)}`} aria-hidden="true" /> {reason}: {count}
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  )
}
