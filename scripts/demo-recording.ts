/** Draws the pictures of the README from a run of the demo: npm run demo:record. */
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { badges, demoPictures } from '../testing/pictures/pictures.ts'
import { recordDemo } from '../testing/pictures/recording.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

for (const [file, text] of [...demoPictures(await recordDemo()), ...badges()]) {
  writeFileSync(`${ROOT}${file}`, text)
  process.stdout.write(`wrote ${file}\n`)
}
