/** The open event streams. */
import { ask, type Stream } from './api.ts'
import { Confirmed, Fault, Head, Time, usePolled } from './parts.tsx'

export function Streams({ mayChange }: { readonly mayChange: boolean }) {
  const { answer, fault, again } = usePolled<{ readonly streams: readonly Stream[] }>('/streams')
  const streams = answer?.streams ?? []
  return (
    <section>
      <h2>Open streams: {streams.length}</h2>
      <Fault text={fault} />
      <table>
        <Head names={['Opened', 'User', 'Route', 'Agent', 'Thread', 'Token expires', 'Stream']} />
        <tbody>
          {streams.map(({ requestId, openedAt, user, route, agent, thread, expiresAt }) => (
            <tr key={requestId}>
              <td>
                <Time at={openedAt} />
              </td>
              <td>{user}</td>
              <td>{route}</td>
              <td>{agent ?? '–'}</td>
              <td>{thread ?? '–'}</td>
              <td>
                <Time at={expiresAt} />
              </td>
              <td>
                <Confirmed
                  label="End"
                  question={`End the stream of ${user} on ${thread ?? route}? The client gets a RUN_ERROR event. The run itself may continue.`}
                  act={() => ask(`/streams/${requestId}`, 'DELETE')}
                  onDone={again}
                  disabled={!mayChange}
                />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
