/** `threadwarden init` with every runtime that the gateway is tested with, as applications mount it. */
import { test } from 'tap'
import { RUNTIMES } from '../contract/runtimes.ts'
import { recognises } from './init-scene.ts'

/** The examples on Express and Hono answer pages of every origin, which the doctor reports. */
const FAULTS = ['upstream.cors']

for (const name of RUNTIMES) {
  for (const mode of ['multi-route', 'single-route'] as const) {
    void test(`a ${mode} runtime, ${name}`, (t) => recognises(t, name, mode, name === '1.75 node' ? [] : FAULTS))
  }
}
