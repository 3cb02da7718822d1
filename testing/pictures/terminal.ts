/** An animated SVG of a terminal. It begins with the first scene; the other lines appear one after the other. */
import { escaped, tidy } from '../bench/plot.ts'
import { textOf, type TerminalLine } from './recording.ts'

const WIDTH = 980
const MARGIN = 20
const BAR = 34
const ROW = 20
/** As many lines as fit into the window. */
const ROWS = 24
const CHARACTER = 7.83

const START_S = 4
const LINE_S = 0.7
const HEADING_S = 1.2
const END_S = 6

const STYLE = `
  text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace; fill: #d1d7e0; white-space: pre }
  .window { fill: #151b23; stroke: #3d444d }
  .cover { fill: #151b23 }
  .bold { font-weight: 700; fill: #f0f6fc }
  .dim { fill: #9198a1 }
  .green { fill: #3fb950 }
  .yellow { fill: #e3b341 }
  .red { fill: #f85149 }
`

/** When a line appears, in seconds. */
interface Moment {
  readonly at: number
  /** How many lines are visible from then on. */
  readonly lines: number
}

/**
 * Draws a terminal. Without animations, the picture shows the first lines.
 * @param title of the window, and of the picture for screen readers
 * @returns the text of an SVG file
 */
export function terminalPicture(title: string, lines: readonly TerminalLine[]): string {
  const height = BAR + ROWS * ROW + MARGIN
  const moments = momentsOf(lines)
  const duration = (moments.at(-1)?.at ?? 0) + END_S
  const percent = (at: number): string => `${Math.round((10_000 * at) / duration) / 100}%`
  const scrolled = (count: number): number => -ROW * Math.max(0, count - ROWS)
  const frames = (offset: (count: number) => number): string =>
    moments.map(({ at, lines: count }) => `${percent(at)} { transform: translateY(${offset(count)}px) }`).join(' ')
  const last = lines.length
  const moving = `
  @media (prefers-reduced-motion: no-preference) {
    .cover { animation: appear ${tidy(duration)}s step-end infinite }
    .lines { animation: scroll ${tidy(duration)}s step-end infinite }
    @keyframes appear { ${frames((count) => count * ROW)} 100% { transform: translateY(${last * ROW}px) } }
    @keyframes scroll { ${frames(scrolled)} 100% { transform: translateY(${scrolled(last)}px) } }
  }
`
  const top = BAR + 14
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>${STYLE}${moving}</style>`,
    `<rect class="window" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="8"/>`,
    ...['#f85149', '#e3b341', '#3fb950'].map((fill, at) => `<circle cx="${20 + 18 * at}" cy="17" r="5.5" fill="${fill}"/>`),
    `<text class="dim" x="${WIDTH / 2}" y="21" text-anchor="middle">${escaped(title)}</text>`,
    `<clipPath id="view"><rect x="1" y="${BAR}" width="${WIDTH - 2}" height="${ROWS * ROW + 4}"/></clipPath>`,
    '<g clip-path="url(#view)">',
    '<g class="lines">',
    ...lines.flatMap((line, at) => drawn(line, top + at * ROW)),
    `<rect class="cover" x="1" y="${BAR}" width="${WIDTH - 2}" height="${(last + ROWS) * ROW}" transform="translate(0 ${last * ROW})"/>`,
    '</g>',
    '</g>',
    '</svg>',
    '',
  ].join('\n')
}

function momentsOf(lines: readonly TerminalLine[]): readonly Moment[] {
  const headings = lines.flatMap((line, index) => (isHeading(line) ? [index] : []))
  const first = headings[1] ?? lines.length
  const moments: Moment[] = [{ at: 0, lines: first }]
  let at = START_S
  for (const [index, line] of lines.entries()) {
    if (index < first || line.length === 0) continue
    moments.push({ at, lines: index + 1 })
    at += isHeading(line) ? HEADING_S : LINE_S
  }
  return moments
}

function isHeading([first]: TerminalLine): boolean {
  return first?.style === 'bold'
}

function drawn(line: TerminalLine, y: number): readonly string[] {
  if (textOf(line).trim() === '') return []
  let column = 0
  const spans = line.map(({ style, text }) => {
    const x = tidy(MARGIN + column * CHARACTER)
    column += text.length
    return `<tspan x="${x}"${style === 'plain' ? '' : ` class="${style}"`}>${escaped(text)}</tspan>`
  })
  return [`<text y="${y}" xml:space="preserve">${spans.join('')}</text>`]
}
