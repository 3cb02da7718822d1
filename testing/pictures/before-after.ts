/** An SVG of one request, without the gateway and with it. */
import { escaped, tidy } from '../bench/plot.ts'
import type { RecordedExchange } from './recording.ts'

const WIDTH = 840
const HEIGHT = 240
const GAP = 20
const PANEL = (WIDTH - GAP) / 2
const BOX = { y: 106, height: 44 } as const

const STYLE = `
  text { font: 14px system-ui, sans-serif; fill: #1f2328 }
  .title { font-size: 16px; font-weight: 600 }
  .code { font: 12.5px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace }
  .panel { fill: #ffffff; stroke: #d1d9e0 }
  .box { fill: #f6f8fa; stroke: #818b98 }
  .gateway { fill: #ddf4ff; stroke: #0969da }
  .unreached { opacity: 0.5 }
  .stop { stroke: #cf222e; stroke-width: 2.5; stroke-linecap: round }
  .line { stroke: #59636e; stroke-width: 1.5; fill: none }
  .head { fill: #59636e }
  .bad { fill: #cf222e }
  .good { fill: #1a7f37 }
  .status { font-weight: 700; fill: #ffffff }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .panel { fill: #0d1117; stroke: #3d444d }
    .box { fill: #151b23; stroke: #656c76 }
    .gateway { fill: #121d2f; stroke: #4493f8 }
    .line { stroke: #9198a1 }
    .head { fill: #9198a1 }
    .bad { fill: #da3633 }
    .good { fill: #238636 }
    .stop { stroke: #f85149 }
    .status { fill: #ffffff }
  }
`

/**
 * Draws both.
 * @param before the exchange with the runtime
 * @param after the same request through the gateway
 * @returns the text of an SVG file
 */
export function beforeAfterPicture(before: RecordedExchange, after: RecordedExchange): string {
  const title = `Bob requests Alice's thread. Without the gateway: ${before.status}. With the gateway: ${after.status}.`
  const right = PANEL + GAP
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>${STYLE}</style>`,
    ...panel(0, 'Without Threadwarden', before, 'bad'),
    ...box(20, 70, 'Bob'),
    ...arrow(90, 270),
    ...box(270, 120, 'Chat runtime'),
    ...panel(right, 'With Threadwarden', after, 'good'),
    ...box(right + 20, 70, 'Bob'),
    ...arrow(right + 90, right + 138),
    ...box(right + 138, 120, 'Threadwarden', 'gateway'),
    `<path class="stop" d="M${right + 267} ${BOX.y + 15}l14 14m0 -14l-14 14"/>`,
    '<g class="unreached">',
    ...box(right + 290, 100, 'Chat runtime'),
    '</g>',
    '</svg>',
    '',
  ].join('\n')
}

function panel(
  x: number,
  title: string,
  { method, path, status, says }: RecordedExchange,
  kind: 'bad' | 'good',
): readonly string[] {
  return [
    `<rect class="panel" x="${x + 0.5}" y="0.5" width="${PANEL - 1}" height="${HEIGHT - 1}" rx="8"/>`,
    `<text class="title" x="${x + 20}" y="34">${title}</text>`,
    `<text class="code" x="${x + 20}" y="72">${escaped(`${method} ${path}`)}</text>`,
    `<rect class="${kind}" x="${x + 20}" y="180" width="52" height="26" rx="13"/>`,
    `<text class="status" x="${x + 46}" y="198" text-anchor="middle">${status}</text>`,
    ...wrapped(says).map((line, at) => `<text x="${x + 84}" y="${198 + 22 * at}">${escaped(line)}</text>`),
  ]
}

/** A sentence in two lines, if it has a quotation. */
function wrapped(text: string): readonly string[] {
  const [first = '', ...rest] = text.split(/(?<=:) /)
  return rest.length === 0 ? [first] : [first, rest.join(' ')]
}

function box(x: number, width: number, label: string, kind: 'box' | 'gateway' = 'box'): readonly string[] {
  return [
    `<rect class="${kind}" x="${x}" y="${BOX.y}" width="${width}" height="${BOX.height}" rx="6"/>`,
    `<text x="${tidy(x + width / 2)}" y="${BOX.y + 27}" text-anchor="middle">${label}</text>`,
  ]
}

function arrow(from: number, to: number): readonly string[] {
  const y = BOX.y + BOX.height / 2
  return [`<path class="line" d="M${from + 4} ${y}H${to - 8}"/>`, `<path class="head" d="M${to - 2} ${y}l-9 -5v10z"/>`]
}
