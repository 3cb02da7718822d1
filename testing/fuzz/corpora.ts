/**
 * The corpora of the coverage-guided fuzz: for each target the inputs that reach what earlier runs have reached. A file has an
 * input in each line, written as a JSON string with a character for each byte, so that a change of it can be read.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { TargetName } from './targets.ts'

function fileOf(name: TargetName): string {
  return fileURLToPath(new URL(`corpora/${name}.txt`, import.meta.url))
}

/** The inputs of a target. */
export function readCorpus(name: TargetName): readonly Buffer[] {
  return readFileSync(fileOf(name), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => Buffer.from(JSON.parse(line) as string, 'latin1'))
}

/** Writes the inputs of a target, the short ones first. */
export function writeCorpus(name: TargetName, inputs: readonly Uint8Array[]): void {
  const lines = [...new Set(inputs.map(inputLine))]
  lines.sort((one, other) => one.length - other.length || (one < other ? -1 : 1))
  writeFileSync(fileOf(name), lines.map((line) => `${line}\n`).join(''))
}

/** An input as a line of a corpus, in ASCII. */
export function inputLine(input: Uint8Array): string {
  const text = JSON.stringify(Buffer.from(input).toString('latin1'))
  return text.replace(/[\u007f-\u00ff]/g, (byte) => `\\u00${byte.charCodeAt(0).toString(16)}`)
}
