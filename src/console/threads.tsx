/** Threads: search, owner, grants and recent decisions, and their changes. */
import { useState } from 'preact/hooks'
import { ask, query, threadPath, type Decision, type Grant, type Thread, type ThreadRow } from './api.ts'
import { Confirmed, Fault, Field, Head, RuleText, Time, usePolled } from './parts.tsx'

interface Page {
  readonly threads: readonly ThreadRow[]
  readonly next: string | null
}

type Key = Pick<ThreadRow, 'thread' | 'scope'>

export function Threads({ mayChange }: { readonly mayChange: boolean }) {
  const [form, setForm] = useState({ thread: '', user: '', agent: '', scope: '' })
  const [search, setSearch] = useState({ user: '', agent: '', scope: '', deleted: 'too', after: '' })
  const [shown, setShown] = useState<Key | null>(null)
  const { answer: page, fault } = usePolled<Page>(`/threads${query(search)}`, false)
  const set = (name: keyof typeof form) => (value: string) => setForm((before) => ({ ...before, [name]: value }))
  return (
    <>
      <section>
        <h2>Threads</h2>
        <form
          class="filters"
          onSubmit={(event) => {
            event.preventDefault()
            const { thread, ...filter } = form
            if (thread === '') setSearch({ ...filter, deleted: 'too', after: '' })
            setShown(thread === '' ? null : { thread, scope: form.scope })
          }}
        >
          <Field label="Thread id" value={form.thread} onChange={set('thread')} />
          <Field label="Owner" value={form.user} onChange={set('user')} />
          <Field label="Agent of thread" value={form.agent} onChange={set('agent')} />
          <Field label="Upstream" value={form.scope} onChange={set('scope')} />
          <button type="submit">Search</button>
        </form>
        <Fault text={fault} />
        <table>
          <Head names={['Thread', 'Upstream', 'Owner', 'Agent', 'State', 'Last used']} />
          <tbody>
            {(page?.threads ?? []).map((row) => (
              <tr key={`${row.scope} ${row.thread}`}>
                <td>
                  <button type="button" class="link" onClick={() => setShown(row)}>
                    {row.thread}
                  </button>
                </td>
                <td>{row.scope}</td>
                <td>{row.owner ?? 'nobody'}</td>
                <td>{row.agent ?? '–'}</td>
                <td>{row.state}</td>
                <td>
                  <Time at={row.lastUsedAt} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {page !== null && page.threads.length === 0 ? <p>No thread matches.</p> : null}
        {page?.next === undefined || page.next === null ? null : (
          <button type="button" onClick={() => setSearch({ ...search, after: page.next ?? '' })}>
            Next page
          </button>
        )}
      </section>
      {shown === null ? null : <OneThread key={`${shown.scope} ${shown.thread}`} of={shown} mayChange={mayChange} />}
    </>
  )
}

function OneThread({ of, mayChange }: { readonly of: Key; readonly mayChange: boolean }) {
  const { answer: thread, fault, again } = usePolled<Thread>(threadPath(of))
  const { answer: history } = usePolled<{ readonly decisions: readonly Decision[] }>(`/decisions${query({ thread: of.thread })}`)
  const [owner, setOwner] = useState('')
  const [grantee, setGrantee] = useState('')
  const [kind, setKind] = useState<'user' | 'group'>('user')
  const [right, setRight] = useState<'read' | 'write'>('read')
  if (thread === null) return <Fault text={fault} />
  const { grants, runners, state } = thread
  return (
    <section aria-label={`Thread ${of.thread}`}>
      <h2>{of.thread}</h2>
      <Fault text={fault} />
      <dl>
        <div>
          <dt>Owner</dt>
          <dd>
            {thread.owner ?? 'nobody'} ({state})
          </dd>
        </div>
        <div>
          <dt>Created</dt>
          <dd>
            <Time at={thread.createdAt} />
          </dd>
        </div>
        <div>
          <dt>Last used</dt>
          <dd>
            <Time at={thread.lastUsedAt} />
          </dd>
        </div>
        {thread.deletedAt === null ? null : (
          <div>
            <dt>Deleted</dt>
            <dd>
              <Time at={thread.deletedAt} />
            </dd>
          </div>
        )}
        {runners.length === 0 ? null : (
          <div>
            <dt>Ran it in observe mode</dt>
            <dd>{runners.join(', ')}</dd>
          </div>
        )}
      </dl>
      <div class="buttons">
        <Confirmed
          label="Transfer"
          question={`Give ${of.thread} to another user? Its grants are removed.`}
          act={() =>
            ask(threadPath(of, '/owner'), 'POST', { user: owner, ...(thread.owner === null ? {} : { expected: thread.owner }) })
          }
          onDone={again}
          disabled={!mayChange}
        >
          <Field label="New owner" value={owner} onChange={setOwner} required />
        </Confirmed>
        <Confirmed
          label="Remove owner"
          question={`Remove the owner and the grants of ${of.thread}? Nobody can use it until it is given to a user.`}
          act={() => ask(threadPath(of, '/owner'), 'DELETE')}
          onDone={again}
          disabled={!mayChange || thread.owner === null}
        />
        <Confirmed
          label="Grant"
          question={`Grant access to ${of.thread}?`}
          act={() => ask(threadPath(of, '/grants'), 'POST', { [kind]: grantee, right })}
          onDone={again}
          disabled={!mayChange || thread.owner === null}
        >
          <label>
            To
            <select value={kind} onChange={(event) => setKind(event.currentTarget.value === 'group' ? 'group' : 'user')}>
              <option value="user">user</option>
              <option value="group">group</option>
            </select>
          </label>
          <Field label="Grantee" value={grantee} onChange={setGrantee} required />
          <label>
            Right
            <select value={right} onChange={(event) => setRight(event.currentTarget.value === 'write' ? 'write' : 'read')}>
              <option value="read">read</option>
              <option value="write">write</option>
            </select>
          </label>
        </Confirmed>
      </div>
      <h3>Grants</h3>
      {grants.length === 0 ? <p>None.</p> : null}
      <ul>
        {grants.map((grant) => (
          <GrantLine key={`${grant.user} ${grant.group}`} grant={grant} of={of} mayChange={mayChange} onDone={again} />
        ))}
      </ul>
      <h3>Recent decisions</h3>
      <ul>
        {(history?.decisions ?? []).map((one) => (
          <li key={one.requestId}>
            <Time at={one.time} /> {one.principal?.id ?? '–'} {one.route}:{' '}
            <span class={one.decision === 'refused' ? 'bad' : ''}>{one.reason}</span>, <RuleText rule={one.rule} />
          </li>
        ))}
      </ul>
    </section>
  )
}

interface GrantLineProps {
  readonly grant: Grant
  readonly of: Key
  readonly mayChange: boolean
  readonly onDone: () => void
}

function GrantLine({ grant: { user, group, right, grantedBy, grantedAt }, of, mayChange, onDone }: GrantLineProps) {
  const to = user === undefined ? { group } : { user }
  const name = user ?? `group ${group}`
  return (
    <li>
      {name}: {right}, by {grantedBy}, <Time at={grantedAt} />{' '}
      <Confirmed
        label="Revoke"
        question={`Remove the grant of ${name} on ${of.thread}?`}
        act={() => ask(threadPath(of, '/grants'), 'DELETE', to)}
        onDone={onDone}
        disabled={!mayChange}
      />
    </li>
  )
}
