/**
 * Bars as an SVG that stands in a page: the same for the same figures, readable on a light page as on a dark one, and with its text
 * as text.
 */

/** A bar. */
export interface Bar {
  readonly label: string
  readonly value: number
  /** What stands behind it. */
  readonly text: string
  /** Ours, what it is compared with, or neither. */
  readonly kind: 'ours' | 'reference' | 'other'
}

/** Bars on a scale of their own, the best first or in whatever order they are to stand. */
export interface BarGroup {
  readonly title: string
  readonly bars: readonly Bar[]
}

/** A picture of them. */
export interface BarChart {
  readonly title: string
  readonly groups: readonly BarGroup[]
}

const WIDTH = 840
const MARGIN = 20
const LABELS = 285
const VALUES = 135
const BARS = WIDTH - 2 * MARGIN - LABELS - VALUES
const ROW = 22
const THICKNESS = 14
const TITLE = 34
const GROUP_TITLE = 30
const GAP = 16

/** So many times the reference is the longest bar. What is longer is drawn as one that is broken. */
const LONGEST = 5

const STYLE = `
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .title { font-size: 16px; font-weight: 600 }
  .group { font-weight: 600 }
  .page { fill: #ffffff }
  .ours { fill: #0969da }
  .reference { fill: #59636e }
  .other { fill: #b1bac4 }
  .mark { stroke: #59636e; stroke-dasharray: 3 3 }
  .break { stroke: #ffffff; stroke-width: 4 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .page { fill: #0d1117 }
    .ours { fill: #4493f8 }
    .reference { fill: #9198a1 }
    .other { fill: #484f58 }
    .mark { stroke: #9198a1 }
    .break { stroke: #0d1117 }
  }
`

/** Draws. @returns the text of an SVG file */
export function barChart({ title, groups }: BarChart): string {
  const height = MARGIN + TITLE + groups.reduce((sum, group) => sum + heightOf(group), 0)
  let top = MARGIN + TITLE
  const drawn = groups.map((group) => {
    const lines = groupLines(group, top)
    top += heightOf(group)
    return lines
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>${STYLE}</style>`,
    `<rect class="page" width="${WIDTH}" height="${height}"/>`,
    `<text class="title" x="${MARGIN}" y="${MARGIN + 14}">${escaped(title)}</text>`,
    ...drawn.flat(),
    '</svg>',
    '',
  ].join('\n')
}

function heightOf({ bars }: BarGroup): number {
  return GROUP_TITLE + ROW * bars.length + GAP
}

function groupLines({ title, bars }: BarGroup, top: number): readonly string[] {
  const reference = bars.find(({ kind }) => kind === 'reference')?.value
  const most = Math.min(Math.max(...bars.map(({ value }) => value)), LONGEST * (reference ?? Number.POSITIVE_INFINITY))
  const long = (value: number): number => (BARS * Math.min(value, most)) / most
  const first = top + GROUP_TITLE
  const left = MARGIN + LABELS
  const mark = tidy(left + long(reference ?? 0))
  return [
    `<text class="group" x="${MARGIN}" y="${top + 16}">${escaped(title)}</text>`,
    ...bars.flatMap(({ label, value, text, kind }, at) => {
      const y = first + ROW * at
      const end = tidy(left + long(value))
      const crack = `<line class="break" x1="${end - 22}" y1="${y + THICKNESS + 2}" x2="${end - 14}" y2="${y - 2}"/>`
      return [
        `<text x="${left - 10}" y="${y + 12}" text-anchor="end">${escaped(label)}</text>`,
        `<rect class="${kind}" x="${left}" y="${y}" width="${tidy(end - left)}" height="${THICKNESS}" rx="2"/>`,
        ...(value > most ? [crack] : []),
        `<text x="${WIDTH - MARGIN}" y="${y + 12}" text-anchor="end">${escaped(text)}</text>`,
      ]
    }),
    ...(reference === undefined
      ? []
      : [`<line class="mark" x1="${mark}" y1="${first - 4}" x2="${mark}" y2="${first + ROW * bars.length - 4}"/>`]),
  ]
}

/** A length in pixels: a tenth is as much as anybody sees. */
export function tidy(value: number): number {
  return Math.round(10 * value) / 10
}

/** Text within an SVG. */
export function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
