/** The how-tos on deployment: commands name files that exist, and configurations and examples of proxies are valid. */
import { existsSync, globSync, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'tap'
import { parse } from 'yaml'
import { load } from '../../testing/support/configuration.ts'
import { TARGETS } from '../proxies/targets.ts'
import { blocksOf } from './commands.ts'
import { blocks, page, ROOT } from './markdown.ts'

void test('the commands for Kubernetes name folders of the repository, and create the Secret that the overlays use', (t) => {
  const commands = ['kubernetes', 'drop-in', 'helm']
    .flatMap((name) => blocksOf(page(`docs/how-to/deploy/${name}.md`)))
    .filter(({ info }) => info === 'sh kubernetes')
    .map(({ code }) => code)
    .join('')
  const folders = [...commands.matchAll(/deploy\/\S+/g)].map(([folder]) => folder)
  t.ok(folders.length > 8)
  const isThere = (path: string): boolean => existsSync(join(ROOT, path))
  for (const path of folders)
    t.ok(path.endsWith('.yaml') ? isThere(path) : isThere(`${path}/kustomization.yaml`) || isThere(`${path}/Chart.yaml`), path)
  const created = [...commands.matchAll(/--from-file=(\S+)/g)].map(([, key = '']) => key)
  const used = globSync('deploy/kubernetes/overlays/**/threadwarden.yaml', { cwd: ROOT }).flatMap((file) =>
    [...page(file).text.matchAll(/\/etc\/threadwarden\/secrets\/([\w-]+)/g)].map(([, key = '']) => key),
  )
  t.same(created.toSorted(), [...new Set(used)].toSorted())
  t.end()
})

void test('the components that the page names exist, and no other', (t) => {
  const text = page('docs/how-to/deploy/kubernetes.md').text
  const components = globSync('deploy/kubernetes/components/*', { cwd: ROOT }).map((path) => basename(path))
  for (const name of components) t.ok(text.includes(`components/${name}`) || text.includes(`\`${name}\``), name)
  for (const [, name = ''] of text.matchAll(/components\/([\w-]+)/g)) t.ok(components.includes(name), name)
  t.end()
})

void test('the values for Helm are those that the chart takes, and their configuration is valid', (t) => {
  const schema = JSON.parse(page('deploy/helm/threadwarden/values.schema.json').text) as { properties: object }
  const defaults = parse(page('deploy/helm/threadwarden/values.yaml').text) as { config: { ownership: object } }
  const examples = blocks(page('docs/how-to/deploy/helm.md'), 'yaml helm')
  const [standalone = ''] = examples
  t.equal(examples.length, 3)
  for (const example of examples) {
    // The one on TLS adds to the others.
    const values = { ...parse(standalone), ...parse(example) } as { config: { upstream: object; ownership: object } }
    for (const key of Object.keys(values)) t.ok(key in schema.properties, key)
    const config = {
      ...defaults.config,
      ...values.config,
      upstream: { url: 'http://127.0.0.1:4000', ...values.config.upstream },
      ownership: { ...defaults.config.ownership, ...values.config.ownership },
    }
    const here = JSON.stringify(config).replaceAll('/etc/threadwarden/secrets/', './').replace('sqlite:/data/', 'sqlite:./data/')
    t.match(load(here, { files: { 'service-token': 'x', 'database-password': 'x' } }), { ok: true })
  }
  t.end()
})

void test('the page on proxies links to each shipped file, and its example of Envoy is YAML that forwards to the default port', (t) => {
  const proxies = page('docs/how-to/deploy/behind-a-proxy.md')
  for (const file of readdirSync(join(ROOT, 'deploy/proxies'))) t.match(proxies.text, `(../../../deploy/proxies/${file})`)
  for (const [target, passedBy] of TARGETS) {
    const cells = ['nginx', 'haproxy', 'caddy'].map((name) => (passedBy.split(' ').includes(name) ? 'passes' : 'refuses'))
    t.ok(proxies.text.includes(`| \`${target}\` | ${cells.join(' | ')} |`), target)
  }
  const examples = blocksOf(proxies).filter(({ info }) => info !== 'yaml')
  t.same(
    examples.map(({ info }) => info),
    ['envoy'],
  )
  t.ok(parse(examples[0]?.code ?? ''))
  t.match(examples[0]?.code, /port_value: 8080/)
  t.end()
})

void test('the commands for containers name the paths of the image', (t) => {
  const dockerfile = page('Dockerfile').text
  t.match(dockerfile, 'ENTRYPOINT ["node", "/app/dist/cli.js"]')
  t.match(dockerfile, /^ {2}THREADWARDEN_DATA=\/data /m)
  // A volume of the image would give a container that is started without one a store of its own, which is lost with it.
  t.notMatch(dockerfile, /^VOLUME/m)
  for (const { info, code } of blocksOf(page('docs/how-to/deploy/container.md'))) {
    if (info !== 'sh docker') continue
    for (const [config] of code.matchAll(/(?<=--config )\S+/g)) t.ok(dockerfile.includes(config), config)
  }
  t.end()
})
