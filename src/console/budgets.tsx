/** What a user, a group or a tenant has used of its token budgets. */
import { useState } from 'preact/hooks'
import { query, type BudgetUsed } from './api.ts'
import { Fault, Field, Head, Time, usePolled } from './parts.tsx'

const NONE = { user: '', group: '', claim: '', issuer: '', value: '' }

export function Budgets() {
  const [asked, setAsked] = useState(NONE)
  const set = (name: keyof typeof NONE) => (value: string) => setAsked((before) => ({ ...before, [name]: value }))
  const { user, group, claim, issuer, value } = asked
  const isWhole = user !== '' || group !== '' || (claim !== '' && issuer !== '' && value !== '')
  const path = isWhole ? `/budgets${query(asked)}` : ''
  const { answer, fault } = usePolled<{ readonly budgets: readonly BudgetUsed[] }>(path)
  const budgets = answer?.budgets ?? []
  return (
    <section>
      <h2>Token budgets</h2>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <Field label="User" value={user} onChange={set('user')} />
        <Field label="Group" value={group} onChange={set('group')} />
        <Field label="Claim" value={claim} onChange={set('claim')} />
        <Field label="Issuer of the claim" value={issuer} onChange={set('issuer')} />
        <Field label="Value of the claim" value={value} onChange={set('value')} />
        <button type="button" onClick={() => setAsked(NONE)}>
          Clear
        </button>
      </form>
      <Fault text={fault} />
      {isWhole ? null : <p>Write a user (corp:alice), a group (corp:staff), or a claim (/tenant), its issuer and its value.</p>}
      <table>
        <Head names={['Per', 'Rule', 'Limit', 'Used', 'Set aside', 'Open runs', 'Window ends']} />
        <tbody>
          {budgets.map(({ per, rule, limit, spent, reserved, openRuns, windowSeconds, resetsAt }, at) => (
            <tr key={at}>
              <td>{per}</td>
              <td>{rule ?? 'configuration'}</td>
              <td>
                {limit} in {windowSeconds / 3600} h
              </td>
              <td class={spent >= limit ? 'bad' : ''}>{spent}</td>
              <td>{reserved}</td>
              <td>{openRuns}</td>
              <td>
                <Time at={resetsAt} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {answer !== null && budgets.length === 0 ? <p>No budget applies.</p> : null}
    </section>
  )
}
