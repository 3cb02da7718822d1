/** podman, with the options that scripts/pod-check.sh chose. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { until } from '../support/until.ts'

/** What a container is doing. */
export interface ContainerState {
  readonly pid: number
  readonly isRunning: boolean
  readonly restarts: number
  readonly exitCode: number
}

export interface Podman {
  /** Runs a command and returns what it prints; throws with what it says if it fails. */
  readonly run: (...args: readonly string[]) => string
  /** Runs a command to its end while this process goes on. */
  readonly start: (...args: readonly string[]) => Promise<void>
  readonly state: (container: string) => ContainerState
  readonly logs: (container: string) => string
  /** Runs pods of a file of manifests, and returns the address of the pod. */
  readonly play: (file: string, pod: string) => Promise<string>
}

/** The network of all pods; the first address is that of the process that runs the checks. */
export const NETWORK = { name: 'chat', subnet: '10.99.0.0/24', host: '10.99.0.1' } as const

/** @param command podman with its options */
export function makePodman(command: readonly string[]): Podman {
  const [program = 'podman', ...options] = command
  const run = (...args: readonly string[]): string => {
    const { status, stdout, stderr, error } = spawnSync(program, [...options, ...args], { encoding: 'utf8' })
    if (error !== undefined) throw error
    if (status !== 0) throw new Error(`podman ${args.join(' ')} failed: ${stderr}`)
    return stdout.trimEnd()
  }
  const inspect = (container: string, format: string): string =>
    run('inspect', '--type', 'container', '--format', format, container)
  return {
    run,
    start: async (...args) => {
      const child = spawn(program, [...options, ...args], { stdio: 'ignore' })
      const [status] = (await once(child, 'close')) as [number | null]
      if (status !== 0) throw new Error(`podman ${args.join(' ')} failed with ${status}`)
    },
    state: (container) => {
      const [pid, isRunning, restarts, exitCode] = inspect(
        container,
        '{{.State.Pid}} {{.State.Running}} {{.RestartCount}} {{.State.ExitCode}}',
      ).split(' ')
      return { pid: Number(pid), isRunning: isRunning === 'true', restarts: Number(restarts), exitCode: Number(exitCode) }
    },
    logs: (container) => {
      const { stdout, stderr } = spawnSync(program, [...options, 'logs', container], { encoding: 'utf8', maxBuffer: 2 ** 28 })
      return `${stdout}${stderr}`
    },
    play: async (file, pod) => {
      run('kube', 'play', '--network', NETWORK.name, file)
      const infra = run('pod', 'inspect', '--format', '{{.InfraContainerID}}', pod)
      const address = (): string => inspect(infra, `{{(index .NetworkSettings.Networks "${NETWORK.name}").IPAddress}}`)
      await until(() => address() !== '')
      return address()
    },
  }
}
