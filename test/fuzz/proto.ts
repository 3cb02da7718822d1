import { examine } from './differential.ts'
import { anyCase } from './grammar.ts'
import { run } from './run.ts'
const t = performance.now()
const r = await run({ arbitrary: anyCase, examine, cases: Number(process.argv[2] ?? 5000), seed: Number(process.argv[3] ?? 1) })
console.log((performance.now() - t) / 1000, 's')
console.log(r.tally.lines().join('\n'))
console.log(r.counterExample)
