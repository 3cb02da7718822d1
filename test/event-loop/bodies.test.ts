/** No body of a request holds the event loop for long (budget.ts). */
import { test } from 'tap'
import { startGateways, within } from './budget.ts'
import { BROKEN_OFF } from '../../testing/event-loop/deployment.ts'
import { SHAPES } from '../../testing/event-loop/shapes.ts'

void test('no body holds the event loop', { timeout: 900_000 }, async (t) => {
  const { gateways, ask } = await startGateways(t)
  const only = process.env['SHAPE']
  for (const shape of SHAPES) {
    if (only !== undefined && !shape.name.includes(only)) continue
    const body = shape.body()
    await within(t, gateways, shape.name, async () => {
      const status = await ask(shape, body)
      const isRefused = shape.status >= 400 && status === BROKEN_OFF
      if (status !== shape.status && !isRefused) t.fail(`${shape.name}: ${status} and not ${shape.status}`)
    })
  }
})
