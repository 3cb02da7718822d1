/** Reports to systemd what state the gateway is in, and takes the socket that systemd passes (sd_notify(3), sd_listen_fds(3)). */
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { existsSync, readFileSync, readlinkSync } from 'node:fs'
import { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../observe/log.ts'

export interface ServiceManager {
  /** @param assignments such as `READY=1`, in this order, without line breaks */
  readonly notify: (...assignments: readonly string[]) => void
  /** Half of the time after which systemd restarts a service that it has not heard of; null without a watchdog. */
  readonly watchdog: number | null
}

/**
 * Node has no datagram socket of the family AF_UNIX, so systemd's own program sends. A fork of the gateway copies its page
 * tables, which takes 20 ms at 340 MB of memory: this shell is started once, while the gateway is small, and forks in its place.
 * It ignores signals that reach all processes of a service or a terminal, and ends with the pipe to the gateway.
 */
const SENDER = `trap '' TERM INT HUP; while IFS= read -r line; do systemd-notify -- "$line"; done`

type Sender = ChildProcessByStdio<Writable, null, null>

/** @returns null where the process was not started with `Type=notify` */
export function connectServiceManager(environment: NodeJS.ProcessEnv, log: Logger): ServiceManager | null {
  const { NOTIFY_SOCKET, PATH, WATCHDOG_USEC, WATCHDOG_PID } = environment
  if (NOTIFY_SOCKET === undefined || NOTIFY_SOCKET === '') return null
  let sender: Sender | null = null
  const start = (): Sender => {
    const child = spawn('/bin/sh', ['-c', SENDER], {
      env: { NOTIFY_SOCKET, PATH },
      stdio: ['pipe', 'ignore', 'inherit'],
    })
    const lost = (error: unknown): void => {
      if (sender !== child) return
      sender = null
      log.error({ err: error }, 'systemd cannot be notified: /bin/sh and systemd-notify are needed for this')
    }
    child.on('error', lost)
    child.on('exit', (code, signal) => lost({ code, signal }))
    child.stdin.on('error', lost)
    // Neither the process nor the pipe may keep the gateway from ending.
    child.unref()
    if (child.stdin instanceof Socket) child.stdin.unref()
    return child
  }
  const isForThisProcess = WATCHDOG_PID === undefined || WATCHDOG_PID === String(process.pid)
  const microseconds = Number(WATCHDOG_USEC)
  return {
    notify: (...assignments) => {
      sender ??= start()
      sender.stdin.write(assignments.map((assignment) => `${assignment}\n`).join(''))
    },
    watchdog: isForThisProcess && microseconds > 0 ? microseconds / 2000 : null,
  }
}

/**
 * Resets systemd's watchdog until `over`, as long as the event loop of this process runs and `answers` resolves with true.
 * An answer that does not come ends the reports.
 */
export async function keepWatchdog(
  { notify, watchdog }: ServiceManager,
  answers: () => Promise<boolean>,
  over: AbortSignal,
): Promise<void> {
  if (watchdog === null) return
  while (!over.aborted) {
    if (await answers()) notify('WATCHDOG=1')
    // Half of what systemd recommends: a worker pool needs time to replace a worker that has not answered.
    await sleep(watchdog / 2, undefined, { signal: over, ref: false }).catch(() => {})
  }
}

/** The first descriptor that systemd passes. */
const FIRST_FD = 3

/**
 * @param pid of this process: a process whose parent was passed sockets has its variables, but at these numbers other files
 * @returns why this is not a socket of systemd; null if it is
 */
export function passedSocketFault(
  fd: number,
  { LISTEN_PID, LISTEN_FDS }: NodeJS.ProcessEnv,
  pid: number = process.pid,
): string | null {
  if (LISTEN_PID === undefined || LISTEN_FDS === undefined) {
    return 'systemd has passed no socket to this process (start it by a .socket unit, or write listen.host and listen.port)'
  }
  if (LISTEN_PID !== String(pid)) {
    return `systemd has passed its sockets to process ${LISTEN_PID}, not to this one, ${pid} (start the gateway without a process in between)`
  }
  const count = /^[1-9]\d{0,3}$/.test(LISTEN_FDS) ? Number(LISTEN_FDS) : 0
  const last = FIRST_FD + count - 1
  return fd <= last
    ? null
    : `systemd has passed ${count === 0 ? 'no socket' : `the sockets 3 to ${last} only`} (LISTEN_FDS=${LISTEN_FDS})`
}

const TCP_LISTEN = '0A'

/**
 * @param process the folder of this process in /proc
 * @returns why the gateway cannot serve on this socket; null if it is a TCP socket that listens (proc_pid_net(5))
 */
export function socketKindFault(fd: number, process = '/proc/self'): string | null {
  const unreadable = (name: string): string =>
    `${process}/${name} cannot be read, which tells what descriptor ${fd} is (let the service read /proc, or write listen.host and listen.port)`
  let link: string
  try {
    link = readlinkSync(`${process}/fd/${fd}`)
  } catch {
    if (!existsSync(`${process}/fd`)) return unreadable('fd')
    return `descriptor ${fd} is not open: the program that systemd started has closed it (start the gateway itself in ExecStart=)`
  }
  // A system without IPv6 has no second file.
  const tables = ['tcp', 'tcp6'].flatMap((name) => textIn(`${process}/net/${name}`) ?? [])
  if (tables.length === 0) return unreadable('net/tcp')
  const [, inode] = /^socket:\[(\d+)\]$/.exec(link) ?? []
  const isListening = tables
    .flatMap((table) => table.split('\n'))
    .map((line) => line.trim().split(/\s+/))
    .some(([, , , state, , , , , , of]) => state === TCP_LISTEN && of === inode)
  return isListening ? null : `descriptor ${fd} is not a TCP socket that listens (write ListenStream= with an address and a port)`
}

function textIn(file: string): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return null
  }
}
