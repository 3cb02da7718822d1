/**
 * Installs the packages of `npm test` and `npm run demo`. It runs on the system's own Node, and does nothing if the
 * lockfiles have not changed since the last run.
 */
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/** @param {string} option */
const has = (option) => process.argv.includes(option)

/**
 * @param {string} folder a package with a lockfile
 * @param {number} size of the installed packages in MB; 0 if unknown
 * @param {string[]} options for `npm ci`
 * @returns whether anything had to be installed
 */
async function install(folder, size, options) {
  const lock = createHash('sha256')
    .update(readFileSync(`${folder}/package-lock.json`))
    .digest('hex')
  const state = [lock, ...options].join(' ')
  const stamp = `${folder}/node_modules/.threadwarden-setup`
  const installed = existsSync(stamp) ? readFileSync(stamp, 'utf8') : ''
  if (installed === state || installed === lock) return false
  const packages = folder === root ? 'the gateway' : folder.slice(root.length)
  process.stdout.write(`Installing the packages of ${packages}${size > 0 ? ` (about ${size} MB)` : ''} …\n`)
  const npm = spawn('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error', ...options], { cwd: folder, stdio: 'inherit' })
  const [status] = await once(npm, 'close')
  if (status !== 0) {
    process.stderr.write(`npm ci failed in ${folder}: see above; is the npm registry reachable?\n`)
    process.exit(1)
  }
  // What the package of Node leaves beside its program: C headers, npm and documentation, 68 MB.
  rmSync(`${folder}/node_modules/node/node_modules`, { recursive: true, force: true })
  writeFileSync(stamp, state)
  return true
}

/** Otherwise the first `npx tap` builds its plugins for .taprc while the file that it runs already uses them, and fails. */
async function buildTap() {
  const path = `${root}node_modules/.bin:${process.env['PATH'] ?? ''}`
  const tap = spawn('tap', ['build'], { cwd: root, stdio: 'inherit', env: { ...process.env, PATH: path } })
  const [status] = await once(tap, 'close')
  if (status !== 0) process.exit(1)
}

/**
 * Programs of Debian that npm does not have.
 * @param {Map<string, string>} missing packages, each with the remedy if it cannot be installed
 */
function installDebian(missing) {
  if (missing.size === 0) return
  const names = [...missing.keys()]
  process.stdout.write(`installing ${names.join(', ')} …\n`)
  // In run level 1, no service of a package starts.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  const options = { stdio: /** @type {const} */ ('inherit'), env }
  // Two runs at once wait for each other with flock: apt-get itself waits for the locks of dpkg alone, for another program.
  const aptGet = ['--timeout', '600', '/var/lib/apt/lists', 'apt-get', '-qq', '-o', 'DPkg::Lock::Timeout=600']
  const isDone = [['update'], ['install', '-y', '--no-install-recommends', ...names]].every(
    (words) => spawnSync('flock', [...aptGet, ...words], options).status === 0,
  )
  if (isDone) return
  const remedies = Array.from(missing, ([name, remedy]) => `${name} could not be installed: ${remedy}\n`)
  process.stderr.write(remedies.join(''))
  process.exit(1)
}

/** @param {string} program */
const isThere = (program) => spawnSync(program, ['--help']).error === undefined

/** What builds and runs images, which only root can do here. */
function installContainers() {
  if (process.getuid?.() !== 0) return
  const names = ['buildah', 'podman', 'runc', 'netavark', 'aardvark-dns', 'catatonit', 'iptables', 'iproute2', 'docker-compose']
  const missing = names.filter((name) => spawnSync('dpkg', ['--status', name]).status !== 0)
  installDebian(new Map(missing.map((name) => [name, 'the checks of the image need it'])))
}

/** What the tests need, by package. */
function installForTests() {
  const missing = new Map()
  // Debian's own; a browser that npm would fetch is not in its registry.
  if (has('--chromium') && !existsSync(process.env['CHROMIUM'] ?? '/usr/bin/chromium')) {
    missing.set('chromium', 'install it, or name another one as CHROMIUM in the environment')
  }
  // promtool, for the alert rules.
  if (has('--manifests') && !isThere('promtool')) missing.set('prometheus', 'install promtool')
  // Proxies in front of the gateway, and what runs its units and its Compose file, by program and package.
  const services = {
    nginx: 'nginx-light',
    haproxy: 'haproxy',
    caddy: 'caddy',
    'docker-compose': 'docker-compose',
    systemctl: 'systemd',
    prometheus: 'prometheus',
    ip: 'iproute2',
  }
  for (const [program, name] of has('--services') ? Object.entries(services) : []) {
    if (!isThere(program)) missing.set(name, `the tests of the suite services need ${program}`)
  }
  installDebian(missing)
}

/** The compiler of the image, and the generator of its SBOM. */
const installImage = () => install(`${root}scripts/image`, 50, ['--omit=optional', '--ignore-scripts'])

if (has('--only-image')) {
  await installImage()
  process.exit(0)
}
if (has('--only-containers')) {
  installContainers()
  process.exit(0)
}
if (has('--only-site')) {
  await install(`${root}site`, 340, ['--ignore-scripts'])
  process.exit(0)
}
const forTests = has('--tests')
// They do not depend on each other.
const [isNew] = await Promise.all([
  // The tools of checks and tests are those of the workspace testing/.
  install(root, forTests ? 490 : 190, forTests ? [] : ['--workspaces=false']),
  // The runtime's peer dependencies contradict each other: npm does not finish without the flag.
  install(`${root}examples`, 270, ['--legacy-peer-deps', '--ignore-scripts']),
])
const packages = Promise.all([
  forTests && isNew && buildTap(),
  forTests && install(`${root}examples/langgraph`, 140, ['--legacy-peer-deps', '--ignore-scripts']),
  forTests && install(`${root}examples/runtime-1.54`, 50, ['--legacy-peer-deps', '--ignore-scripts']),
  forTests && install(`${root}examples/agui-1.0`, 25, ['--ignore-scripts']),
  has('--runtimes') && install(`${root}examples/runtimes`, 480, ['--legacy-peer-deps', '--ignore-scripts']),
  has('--web') && install(`${root}examples/web`, 500, ['--ignore-scripts']),
  has('--web') && install(`${root}examples/next`, 660, ['--legacy-peer-deps', '--ignore-scripts']),
  has('--image') && installImage(),
  has('--site') && install(`${root}site`, 340, ['--ignore-scripts']),
  // Its packages ask for the AWS CDK, of which they are parts. Only the programs in them are used.
  has('--manifests') && install(`${root}testing/deploy`, 110, ['--legacy-peer-deps', '--ignore-scripts']),
  has('--mutants') && install(`${root}scripts/mutants/tester`, 0, ['--ignore-scripts']),
  has('--fuzzer') && install(`${root}scripts/coverage-fuzz/fuzzer`, 0, ['--ignore-scripts']),
])
// Meanwhile: each of them waits for downloads most of the time.
installForTests()
await packages
