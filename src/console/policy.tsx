/** The active policy: which rules decide about each route, by the relation of the caller to the thread. */
import type { Access, Policy } from './api.ts'
import { Fault, PolicyFile, RuleText, usePolled } from './parts.tsx'

const RELATIONS = ['own', 'shared', 'unknown', 'foreign'] as const

export function PolicyView() {
  const { answer: policy, fault } = usePolled<Policy>('/policy')
  if (policy === null) return <Fault text={fault} />
  return (
    <section>
      <h2>Active policy</h2>
      <p>
        <PolicyFile file={policy.file} hash={policy.hash} />
      </p>
      <Fault text={fault} />
      <table class="matrix">
        <thead>
          <tr>
            <th scope="col">Route</th>
            <th scope="col">Path</th>
            <th scope="col">No thread</th>
            {RELATIONS.map((relation) => (
              <th scope="col" key={relation}>
                {relation === 'unknown' ? 'unowned' : relation}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {policy.routes.map(({ upstream, route, method, path, hasThread, closed, access }) => (
            <tr key={`${upstream} ${route} ${method}`} class={closed ? 'closed' : ''}>
              <th scope="row">{route}</th>
              <td>
                {method} <code>{path}</code>
              </td>
              <td>{hasThread ? '' : <Rules access={access} />}</td>
              {RELATIONS.map((relation) => (
                <td key={relation}>
                  {hasThread ? (
                    <Rules access={access.filter(({ threads }) => threads === null || threads.includes(relation))} />
                  ) : (
                    ''
                  )}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

function Rules({ access }: { readonly access: readonly Access[] }) {
  if (access.length === 0) return <span class="none">nobody</span>
  return (
    <>
      {access.map(({ effect, who, agents, conditions, rule }) => (
        <p key={`${rule.name} ${rule.line}`} class={effect === 'deny' ? 'bad' : ''}>
          {effect === 'deny' ? 'not ' : ''}
          {who.join(', ')}
          {agents === null ? '' : `, agents ${agents.join(', ')}`}
          {conditions.map((one) => `, ${one}`)}
          <br />
          <RuleText rule={rule} />
        </p>
      ))}
    </>
  )
}
