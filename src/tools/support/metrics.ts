/** The metrics of a gateway without names that an operator chose. */
import type { Pseudonyms } from './pseudonyms.ts'

/** Labels whose values are a part of the program. */
const CLOSED: ReadonlySet<string> = new Set([
  'engine',
  'kind',
  'le',
  'operation',
  'outcome',
  'reason',
  'route',
  'status_class',
  'use',
  'version',
])

const SAMPLE = /^(threadwarden_\w+|process_\w+|nodejs_\w+)(?:\{(.*)\})? (\S+)$/
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g

/** Prometheus text exposition format, without comments. Lines of any other form are left out. */
export function samplesOf(text: string, pseudonyms: Pseudonyms): readonly string[] {
  return text.split('\n').flatMap((line) => {
    const [whole, name, labels = '', value] = SAMPLE.exec(line) ?? []
    if (whole === undefined) return []
    const kept = [...labels.matchAll(LABEL)].map(([, label = '', text = '']) =>
      CLOSED.has(label) && /^[\w.+/-]*$/.test(text) ? `${label}="${text}"` : `${label}="${pseudonyms.of(label, text)}"`,
    )
    return [`${name}${kept.length === 0 ? '' : `{${kept.join(',')}}`} ${value}`]
  })
}
