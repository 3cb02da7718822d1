/** The parts of the benchmark, by the names that the command line has for them. */
import { claims } from './claims.ts'
import { eventLoop } from './event-loop.ts'
import { lists } from './lists.ts'
import { ownership } from './ownership.ts'
import { langgraph, requests } from './requests.ts'
import { signals } from './signals.ts'
import { streams } from './streams.ts'

/** All of them. Each has testing/bench/results/NAME.json, and its place in docs/contributing/benchmarks.md. */
export const PARTS = { requests, langgraph, lists, claims, streams, 'event-loop': eventLoop, signals, ownership } as const

export type PartName = keyof typeof PARTS
