/** Explains a request: a recent one by its id, a line of the audit, or the claims of a token. */
import { useEffect, useState } from 'preact/hooks'
import { ask, type Explanation } from './api.ts'
import { Facts, Fault, faultText, Field, PolicyFile, RuleText } from './parts.tsx'

/** The texts of the verdicts about one rule (src/core/decide/rules.ts). */
const VERDICTS: Readonly<Record<string, string>> = {
  applies: 'matches',
  failed: 'cannot be evaluated: a claim has another type',
  method: 'covers other methods',
  who: 'covers other callers',
  issuer: 'covers other issuers',
  role: 'the caller does not have the role',
  permission: 'the caller does not have the permissions',
  claim: 'the caller does not have the claim',
  agent: 'covers other agents',
  unless: 'unless exempts the caller',
  upstream: 'upstream.userScoped is not true',
  thread: 'covers other threads',
  deleted: 'the owner deleted the thread',
  unsettled: 'the owner is not confirmed',
}

/** @throws Error for text that is neither */
function questionOf(text: string, method: string, target: string): object {
  const trimmed = text.trim()
  if (trimmed !== '' && !trimmed.startsWith('{')) return { requestId: trimmed }
  const value = trimmed === '' ? {} : (JSON.parse(trimmed) as Readonly<Record<string, unknown>>)
  if (value['audit'] !== undefined) return { line: value }
  if (target === '') throw new Error('Claims need the method and the target of the request.')
  return { method, target, ...(trimmed === '' ? {} : { claims: value }) }
}

export function Explain({ requestId }: { readonly requestId: string }) {
  const [text, setText] = useState(requestId)
  const [method, setMethod] = useState('GET')
  const [target, setTarget] = useState('')
  const [explanation, setExplanation] = useState<Explanation | null>(null)
  const [fault, setFault] = useState<string | null>(null)
  const explain = async (asked: string): Promise<void> => {
    setFault(null)
    setExplanation(null)
    try {
      setExplanation(await ask<Explanation>('/explain', 'POST', questionOf(asked, method, target)))
    } catch (error) {
      const isForm = error instanceof SyntaxError || (error instanceof Error && error.constructor === Error)
      setFault(isForm ? `Not understood: ${error.message}` : faultText(error))
    }
  }
  useEffect(() => {
    setText(requestId)
    if (requestId !== '') void explain(requestId)
  }, [requestId])
  return (
    <section>
      <h2>Explain</h2>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void explain(text)
        }}
      >
        <label>
          Request id, line of the audit log, or claims of a token as JSON; empty for a caller who is not signed in
          <textarea rows={5} value={text} spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        <div class="filters">
          <Field label="Method, for claims" value={method} onChange={(value) => setMethod(value.toUpperCase())} />
          <Field label="Target, for claims" value={target} onChange={setTarget} />
          <button type="submit">Explain</button>
        </div>
      </form>
      <Fault text={fault} />
      {explanation === null ? null : <Explained explanation={explanation} />}
    </section>
  )
}

function Explained({ explanation }: { readonly explanation: Explanation }) {
  const { then, same, now, request, route, principal, facts, policy, rules, upstream, notes } = explanation
  return (
    <div class="explained">
      <h3>Outcome</h3>
      {now === null ? (
        <p>The request was refused before the policy.</p>
      ) : (
        <p>
          <strong class={now.outcome === 'permitted' ? 'good' : 'bad'}>{now.outcome}</strong>: {now.reason}
          {now.status === null ? '' : `, ${now.status} ${now.code ?? ''}`}, by <RuleText rule={now.rule} />
        </p>
      )}
      {then === null ? null : (
        <p>
          Then: {then.outcome} ({then.reason}
          {then.rule === null ? '' : `, rule ${then.rule}`}).{' '}
          {same === null ? 'Whether it is the same now is not known.' : same ? 'The same now.' : 'Different now.'}
        </p>
      )}
      <h3>1. Target</h3>
      <Facts of={request} />
      <h3>2. Caller</h3>
      <Facts of={principal} />
      <h3>3. Route</h3>
      <Facts of={route} />
      <h3>4. Facts</h3>
      <Facts of={facts} />
      <h3>
        5. Rules of <PolicyFile {...policy} />
      </h3>
      {rules.length === 0 ? (
        <p>None was tried.</p>
      ) : (
        <ol>
          {rules.map((rule) => (
            <li key={`${rule.name} ${rule.line}`}>
              {rule.effect} <RuleText rule={rule} />: {VERDICTS[rule.verdict] ?? rule.verdict}
              {rule.decides ? <strong>, decides</strong> : null}
            </li>
          ))}
        </ol>
      )}
      {upstream === null ? null : (
        <>
          <h3>6. Request to the upstream</h3>
          <Facts of={upstream} />
        </>
      )}
      {notes.map((note) => (
        <p key={note}>{note}</p>
      ))}
    </div>
  )
}
