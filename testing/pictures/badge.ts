/** A badge as an SVG of this repository, so that a page needs no remote service. */
import { escaped, tidy } from '../bench/plot.ts'

/** About the width of a character of this size. */
const CHARACTER = 6.6
const PADDING = 7
const HEIGHT = 20

/** Draws a badge: a name, and a value beside it. */
export function badge(name: string, value: string): string {
  const left = tidy(name.length * CHARACTER + 2 * PADDING)
  const right = tidy(value.length * CHARACTER + 2 * PADDING)
  const width = tidy(left + right)
  const text = (x: number, length: number, content: string): string =>
    `<text x="${tidy(x)}" y="14" textLength="${tidy(length - 2 * PADDING)}" lengthAdjust="spacingAndGlyphs">${escaped(content)}</text>`
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${HEIGHT}" width="${width}" height="${HEIGHT}" role="img">`,
    `<title>${escaped(`${name}: ${value}`)}</title>`,
    '<style>text { font: 11px Verdana, system-ui, sans-serif; fill: #ffffff; text-anchor: start }</style>',
    `<clipPath id="round"><rect width="${width}" height="${HEIGHT}" rx="3"/></clipPath>`,
    '<g clip-path="url(#round)">',
    `<rect width="${left}" height="${HEIGHT}" fill="#59636e"/>`,
    `<rect x="${left}" width="${right}" height="${HEIGHT}" fill="#0969da"/>`,
    text(PADDING, left, name),
    text(left + PADDING, right, value),
    '</g>',
    '</svg>',
    '',
  ].join('\n')
}
