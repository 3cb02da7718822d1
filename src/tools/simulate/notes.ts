/** Lists what an explanation cannot show, and what else the gateway does. */
import { isRefusal } from '../../core/reasons.ts'
import type { Policy } from '../../policy/policy.ts'
import type { Explanation, Question } from './explain.ts'
import { idleGrant } from './decision-text.ts'

export function notesOn(explanation: Explanation, question: Question, policy: Policy): readonly string[] {
  const { outcome, trace, facts, target, mount, descriptor, principal, enveloped } = explanation
  const permit = typeof outcome === 'object' && outcome.outcome === 'permitted' ? outcome : null
  const notes = [...explanation.notes]
  const say = (when: boolean, note: string): void => {
    if (when) notes.push(note)
  }
  const idle =
    descriptor === null || principal === null || facts === null ? null : idleGrant(facts, descriptor, principal, policy.rules)
  say(idle !== null, idle ?? '')
  const unknown = trace?.relation === 'unknown' && facts?.record === null
  const applies = trace?.tried.some(({ rule, verdict }) => rule.effect === 'allow' && verdict === 'applies') === true
  say(unknown && applies && permit === null && facts.unknownThread === 'deny', 'ownership.unknownThread is deny')
  say(unknown && facts.unknownThread === 'verify' && applies, verifyNote(question))
  say(question.body.length === 0 && isOfBody(outcome), 'no --body was given')
  say(permit?.answerEmpty === true, 'nothing is sent: the gateway answers as the upstream does for a new thread')
  say(permit?.claim === true && trace?.relation === 'unknown', `the thread becomes that of ${permit?.owner ?? ''}`)
  const { id, own } = descriptor?.route ?? {}
  say(permit !== null && own === true, 'nothing is sent: the gateway answers itself')
  say(permit?.claim === true && trace?.relation === 'shared', `the thread stays that of ${permit?.owner ?? ''}`)
  say(permit !== null && id === 'threads/list', 'the list holds the threads whose messages the caller may read')
  say(permit !== null && id === 'info' && policy.rules.nameAgents, 'the answer names only the agents that the caller may use')
  say(permit !== null && target?.query.has('cursor') === true, 'the cursor is not looked at')
  say(question.presented.kind === 'token' && explanation.principal?.kind === 'user', 'revocations are not looked at')
  say(
    permit !== null && mount?.transport === 'auto',
    `${mount?.place.join('.')}.transport is auto: written as for a multi-route runtime`,
  )
  say((target?.droppedQueryNames ?? 0) > 0, `dropped from the query: ${target?.droppedQueryNames ?? 0}`)
  say(id === 'transcribe' && !enveloped, 'a body is read as JSON here; a recording as multipart is not')
  return notes
}

function isOfBody(outcome: Explanation['outcome']): boolean {
  return isRefusal(outcome) && (outcome.code === 'body-malformed' || outcome.code === 'media-type-unsupported')
}

function verifyNote({ upstreamHistory }: Question): string {
  const held = upstreamHistory === 'none' ? 'nothing' : 'something'
  return `ownership.unknownThread is verify: the upstream is asked first, and is taken to hold ${held} of the thread`
}
