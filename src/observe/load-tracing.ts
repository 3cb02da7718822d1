/** Loads the library for traces where the environment asks for them. */
import type { Logger } from './log.ts'
import type { Tracing } from './traces.ts'

/** Whether the environment asks for traces (OpenTelemetry, "Environment Variable Specification"). */
function asksForTraces(env: NodeJS.ProcessEnv): boolean {
  const endpoint = env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] ?? env['OTEL_EXPORTER_OTLP_ENDPOINT'] ?? ''
  const exporter = env['OTEL_TRACES_EXPORTER'] ?? 'otlp'
  return endpoint !== '' && exporter !== 'none' && env['OTEL_SDK_DISABLED']?.toLowerCase() !== 'true'
}

/** Null if the environment asks for no traces: then nothing of the library is loaded. */
export async function loadTracing(env: NodeJS.ProcessEnv, log: Logger): Promise<Tracing | null> {
  if (!asksForTraces(env)) return null
  const { startTracing } = await import('./open-telemetry.ts')
  return startTracing(env, log)
}
