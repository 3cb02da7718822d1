/** docs/explanation/request.md names every code of a refusal, each with its status, and the diagram shows the same statuses. */
import { test } from 'tap'
import { CODES } from '../../src/core/reasons.ts'
import { page, rows, section } from './markdown.ts'

const PAGE = page('docs/explanation/request.md')
const PHASES = rows(section(PAGE, 'Phases')).map(([phase = '', , codes = '']) => ({ phase, codes: codesIn(codes) }))

function codesIn(text: string): readonly { readonly code: string; readonly status: number }[] {
  return Array.from(text.matchAll(/`([a-z-]+)` (\d{3})/g), ([, code = '', status]) => ({ code, status: Number(status) }))
}

void test('each code of the phases has the status of the program', (t) => {
  for (const { code, status } of PHASES.flatMap(({ codes }) => codes))
    t.equal(new Map<string, { readonly status: number }>(Object.entries(CODES)).get(code)?.status, status, code)
  t.end()
})

void test('the page names every code', (t) => {
  const named = new Set(codesIn(section(PAGE, 'Phases')).map(({ code }) => code))
  t.same([...named].toSorted(), Object.keys(CODES).toSorted())
  t.end()
})

void test('the diagram shows the statuses of each phase', (t) => {
  const shown = new Map(
    Array.from(PAGE.text.matchAll(/e(\d+)\["([\d ,or]+)"\]/g), ([, phase, statuses = '']) => [phase, statuses]),
  )
  for (const { phase, codes } of PHASES) {
    const number = /^\d+/.exec(phase)?.[0]
    const refusals = (shown.get(number) ?? '')
      .match(/\d{3}/g)
      ?.map(Number)
      .filter((status) => status >= 400)
    t.same(refusals, [...new Set(codes.map(({ status }) => status))].toSorted(), phase)
  }
  t.end()
})
