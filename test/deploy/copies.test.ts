/** Files that several tools of deployment need in their own folders are the same everywhere, and name one version. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { parse } from 'yaml'
import packageJson from '../../package.json' with { type: 'json' }
import { ROOT } from '../suites/suites.ts'

const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8')

void test('the alert rules are the same in the Kustomize component and the chart', (t) => {
  const text = read('deploy/observability/threadwarden.rules.yml')
  const rules = parse(text) as unknown
  t.equal(read('deploy/helm/threadwarden/files/threadwarden.rules.yml'), text)
  t.same((parse(read('deploy/kubernetes/components/monitoring/prometheus-rule.yaml')) as { spec: unknown }).spec, rules)
  t.end()
})

void test('the dashboard is the same in the Kustomize component and the chart', (t) => {
  const text = read('deploy/observability/grafana-dashboard.json')
  t.equal(read('deploy/helm/threadwarden/files/grafana-dashboard.json'), text)
  t.equal(read('deploy/kubernetes/components/grafana-dashboard/threadwarden.json'), text)
  t.end()
})

void test('every image and version label of the manifests is that of the package', (t) => {
  const texts = globSync('deploy/{kubernetes,helm}/**/*.yaml', { cwd: ROOT }).map(read)
  const versions = texts.flatMap((text) =>
    [
      ...text.matchAll(
        /(?:threadwarden\/threadwarden|newTag):\s?(\S+)|app\.kubernetes\.io\/version: (\d\S+)|^(?:appV|v)ersion: (\d+\.\S+)/gm,
      ),
    ].map(([, image, label, chart]) => image ?? label ?? chart),
  )
  t.ok(versions.length >= 5, String(versions.length))
  t.same([...new Set(versions)], [packageJson.version])
  t.end()
})

/** Every `trustedProxies` in a text, also in examples that are no YAML of their own. */
const trusted = (text: string): readonly string[] =>
  Array.from(text.matchAll(/trustedProxies:\s*\[([^\]]*)\]/g), ([, networks = '']) => networks).flatMap((networks) =>
    networks.split(',').map((network) => network.trim()),
  )

void test('no file trusts a proxy that the operator has not named, and examples name no more than 256 addresses', (t) => {
  const files = globSync('{deploy,config,examples}/**/*.yaml', { cwd: ROOT, exclude: ['**/node_modules/**'] })
  const networks = files.flatMap((file) => trusted(read(file)).map((network) => `${file}: ${network}`))
  t.ok(networks.length >= 4, 'the overlays and the chart say that they trust none')
  t.same(
    networks.filter((one) => !one.endsWith(': ')),
    [],
  )
  const examples = globSync('docs/**/*.md', { cwd: ROOT }).flatMap((file) => trusted(read(file)))
  t.ok(examples.length > 0)
  for (const example of examples) t.ok(Number(example.split('/')[1]) >= 24, example)
  t.end()
})
