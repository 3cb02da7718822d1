/** Opens a store as a process of its own, and says whether the driver of PostgreSQL was loaded for it. */
import { createRequire } from 'node:module'
import { configSchema } from '../../src/config/schema.ts'
import { openStore } from '../../src/store/open.ts'
import '../../src/gateway/start.ts'

const [store = ''] = process.argv.slice(2)
const opened = await openStore(configSchema.shape.ownership.parse({ store, unknownThread: 'claim' }))
const { cache } = createRequire(import.meta.url)
process.stdout.write(String(Object.keys(cache).some((file) => /[/\\]node_modules[/\\]pg[/\\]/.test(file))))
await opened.close()
