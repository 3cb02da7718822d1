/** The mutants that may survive, each with its reason (scripts/mutants/tester/accepted.yaml). */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { z } from 'zod'
import { ROOT, type Mutant } from './run.ts'

const schema = z.array(
  z.strictObject({
    file: z.string(),
    /** The source line, without the blanks around it. */
    code: z.string(),
    kind: z.string(),
    replacement: z.string(),
    reason: z.string().min(1),
  }),
)

/** One of them. */
export type Accepted = z.infer<typeof schema>[number]

/** Reads the list. */
export function readAccepted(): readonly Accepted[] {
  return schema.parse(parse(readFileSync(join(ROOT, 'scripts/mutants/tester/accepted.yaml'), 'utf8')) ?? [])
}

/** True if this is the mutant that an entry speaks of, wherever its line has gone. */
export function speaksOf(entry: Accepted, mutant: Mutant): boolean {
  return (['file', 'code', 'kind', 'replacement'] as const).every((key) => entry[key] === mutant[key])
}
