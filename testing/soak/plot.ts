/** The memory of a soak as a picture, an SVG: the same for the same result, readable on a light page as on a dark one. */
import { escaped, tidy } from '../bench/plot.ts'
import type { Sample, SoakResult } from './result.ts'

const WIDTH = 840
const HEIGHT = 360
const LEFT = 70
const RIGHT = 20
const TOP = 84
const BOTTOM = 50
const MIB = 2 ** 20

/** Lines across. */
const STEPS = 4

const STYLE = `
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .title { font-size: 16px; font-weight: 600 }
  .page { fill: #ffffff }
  .warm-up { fill: #818b98; fill-opacity: 0.15 }
  .across { stroke: #d1d9e0 }
  .rss { stroke: #0969da } .heap { stroke: #1a7f37 }
  .rss, .heap { fill: none; stroke-width: 2 }
  .upstream { stroke: #cf222e } .reload { stroke: #9a6700 } .keys { stroke: #8250df }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .page { fill: #0d1117 }
    .across { stroke: #3d444d }
    .rss { stroke: #4493f8 } .heap { stroke: #3fb950 }
    .upstream { stroke: #f85149 } .reload { stroke: #d29922 } .keys { stroke: #ab7df8 }
  }
`

const LEGEND = [
  ['rss', 'resident'],
  ['heap', 'heap and buffers'],
  ['upstream', 'upstream killed'],
  ['reload', 'reload'],
  ['keys', 'new key'],
] as const

/** Draws. @returns the text of an SVG file */
export function memoryPlot({ samples, options, faults }: SoakResult): string {
  const seconds = 60 * options.minutes
  const most = ceiling(Math.max(1, ...samples.map(({ rss, heap }) => Math.max(rss ?? 0, heap))) / MIB)
  const x = (at: number): number => tidy(LEFT + ((WIDTH - LEFT - RIGHT) * Math.min(at, seconds)) / seconds)
  const y = (mib: number): number => tidy(HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * mib) / most)
  const line = (figure: 'rss' | 'heap'): string => {
    const told = samples.filter((sample): sample is Sample & { rss: number } => sample[figure] !== null)
    const points = told.map((sample) => `${x(sample.at)},${y(sample[figure] / MIB)}`)
    return `<polyline class="${figure}" points="${points.join(' ')}"/>`
  }
  const steps = Array.from({ length: STEPS + 1 }, (_, at) => at / STEPS)
  const title = `Memory of the gateway over ${Math.round(100 * options.minutes) / 100} minutes, MiB`
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>${STYLE}</style>`,
    `<rect class="page" width="${WIDTH}" height="${HEIGHT}"/>`,
    `<text class="title" x="20" y="34">${escaped(title)}</text>`,
    ...LEGEND.flatMap(([name, text], at) => [
      `<line class="${name}" x1="${20 + 160 * at}" y1="58" x2="${44 + 160 * at}" y2="58" stroke-width="2"/>`,
      `<text x="${50 + 160 * at}" y="62">${text}</text>`,
    ]),
    `<rect class="warm-up" x="${LEFT}" y="${TOP}" width="${tidy(x(60 * options.warmUp) - LEFT)}" height="${HEIGHT - TOP - BOTTOM}"/>`,
    `<text x="${LEFT + 6}" y="${TOP + 16}">warm-up</text>`,
    ...steps.flatMap((part) => [
      `<line class="across" x1="${LEFT}" y1="${y(part * most)}" x2="${WIDTH - RIGHT}" y2="${y(part * most)}"/>`,
      `<text x="${LEFT - 8}" y="${y(part * most) + 4}" text-anchor="end">${tidy(part * most)}</text>`,
      `<text x="${x(part * seconds)}" y="${HEIGHT - 14}" text-anchor="middle">${tidy(part * options.minutes)} min</text>`,
    ]),
    ...faults.map(
      ({ fault, at }) =>
        `<line class="${fault}" x1="${x(at)}" y1="${HEIGHT - BOTTOM}" x2="${x(at)}" y2="${HEIGHT - BOTTOM + 12}"/>`,
    ),
    line('heap'),
    line('rss'),
    '</svg>',
    '',
  ].join('\n')
}

/** The next number above that can be divided by the steps and is easily read. */
function ceiling(value: number): number {
  const unit = 10 ** Math.floor(Math.log10(value))
  return unit * ([1, 2, 4, 6, 8, 10].find((times) => times * unit >= value) ?? 10)
}
