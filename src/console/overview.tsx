/** Health, pending conditions, the active configuration, issuers, upstreams and certificates. */
import { useState } from 'preact/hooks'
import { ask, type Status } from './api.ts'
import { Confirmed, Fault, Head, PolicyFile, Time, usePolled } from './parts.tsx'

/** Certificates that expire within this time are shown with the health, in milliseconds. */
const WEEK_MS = 7 * 24 * 3600_000

function Written() {
  const [isOpen, setOpen] = useState(false)
  const { answer, fault } = usePolled<{ readonly written: object }>(isOpen ? '/configuration' : '')
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>As written, without secrets</summary>
      <Fault text={fault} />
      {answer === null ? null : <pre>{JSON.stringify(answer.written, null, 2)}</pre>}
    </details>
  )
}

export function Overview({ mayChange }: { readonly mayChange: boolean }) {
  const { answer: status, fault, again } = usePolled<Status>('/status')
  if (status === null) return <Fault text={fault} />
  const { configuration, lastReload } = status
  const pending = Object.entries(status.pending)
  const notes = Object.entries(status.notes)
  const stale = status.issuers.filter(({ state }) => state === 'stale')
  const due = status.certificates.filter(({ expiresAt }) => Date.parse(expiresAt) - Date.now() < WEEK_MS)
  return (
    <>
      <Fault text={fault} />
      <section>
        <h2>Health</h2>
        <p>
          <strong class={status.ready ? 'good' : 'bad'}>{status.ready ? 'Ready' : 'Not ready'}</strong>, version {status.version},{' '}
          {status.workers} {status.workers === 1 ? 'process' : 'processes'}, started <Time at={status.startedAt} />
        </p>
        {pending.length + notes.length + stale.length + due.length === 0 ? null : (
          <ul>
            {pending.map(([name, text]) => (
              <li key={name} class="bad">
                <strong>{name}</strong>: {text}
              </li>
            ))}
            {stale.map(({ key, fetchedAt }) => (
              <li key={key} class="bad">
                <strong>issuer {key}</strong>: the keys cannot be fetched; those in use are from <Time at={fetchedAt} />
              </li>
            ))}
            {due.map(({ name, expiresAt }) => (
              <li key={name} class="bad">
                <strong>{name}</strong>: the certificate {Date.parse(expiresAt) < Date.now() ? 'expired' : 'expires'}{' '}
                <Time at={expiresAt} />
              </li>
            ))}
            {notes.map(([name, text]) => (
              <li key={name}>
                <strong>{name}</strong>: {text}
              </li>
            ))}
          </ul>
        )}
      </section>
      <section>
        <h2>Configuration</h2>
        <dl>
          <div>
            <dt>Hash</dt>
            <dd>
              <code>{configuration.digest.slice(0, 16)}</code>, generation {configuration.generation}
            </dd>
          </div>
          <div>
            <dt>Enforcement</dt>
            <dd>{configuration.enforcement}</dd>
          </div>
          <div>
            <dt>Policy</dt>
            <dd>
              <PolicyFile {...configuration.policy} />
            </dd>
          </div>
          <div>
            <dt>Last reload</dt>
            <dd>
              {lastReload === null ? (
                'none since the start'
              ) : (
                <>
                  <span class={lastReload.outcome === 'refused' ? 'bad' : ''}>{lastReload.outcome}</span>,{' '}
                  <Time at={lastReload.at} />, by {lastReload.cause}
                </>
              )}
            </dd>
          </div>
        </dl>
        {lastReload === null || lastReload.faults.length === 0 ? null : (
          <ul>
            {lastReload.faults.map((one) => (
              <li key={one} class="bad">
                {one}
              </li>
            ))}
          </ul>
        )}
        <Written />
        <Confirmed
          label="Reload"
          question="Reload the configuration? An invalid one changes nothing."
          act={() => ask('/reload', 'POST')}
          onDone={again}
          disabled={!mayChange}
        />
      </section>
      <section>
        <h2>Issuers</h2>
        <table>
          <Head names={['Key', 'Issuer', 'Keys', 'Fetched', 'Key ids']} />
          <tbody>
            {status.issuers.map(({ key, issuer, state, fetchedAt, keys }) => (
              <tr key={key}>
                <th scope="row">{key}</th>
                <td>{issuer}</td>
                <td class={state === 'usable' ? 'good' : 'bad'}>{state}</td>
                <td>{fetchedAt === null ? 'from the configuration' : <Time at={fetchedAt} />}</td>
                <td>{keys.join(', ')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <section>
        <h2>Upstreams</h2>
        <table>
          <Head names={['Key', 'Path', 'Transport']} />
          <tbody>
            {status.upstreams.map(({ key, publicPath, transport }) => (
              <tr key={key}>
                <th scope="row">{key === '' ? 'upstream' : key}</th>
                <td>{publicPath}</td>
                <td class={transport === null ? 'bad' : ''}>{transport ?? 'unknown'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {status.certificates.length === 0 ? null : (
        <section>
          <h2>Certificates</h2>
          <table>
            <Head names={['Setting', 'Expires']} />
            <tbody>
              {status.certificates.map(({ name, expiresAt }) => (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  <td class={Date.parse(expiresAt) < Date.now() ? 'bad' : ''}>
                    <Time at={expiresAt} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </>
  )
}
