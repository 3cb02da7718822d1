/** Where the upstream is: an address and a path, each where it belongs, so that nothing is joined twice or by chance. */
import { test } from 'tap'
import { accepted, faultPaths, faultsIn } from '../../testing/support/configuration.ts'

for (const url of ['http://127.0.0.1:4000', 'https://runtime.internal', 'http://runtime:80/', 'http://[::1]:4000']) {
  void test(`${url} is an address of an upstream`, (t) => {
    t.equal(accepted({ 'upstream.url': url }).config.upstream?.url, url)
    t.end()
  })
}

for (const url of [
  'http://a/api',
  'http://a//',
  'http://user:pass@a',
  'http://user@a',
  'http://a?x=1',
  'http://a#x',
  'ftp://a',
  'ws://a',
]) {
  void test(`${url} is refused: host and port alone`, (t) => {
    const fault = {
      path: 'upstream.url',
      message: 'must be http(s)://host:port alone',
      hint: 'the path goes to upstream.basePath',
    }
    t.match(faultsIn({ 'upstream.url': url }), [fault])
    t.end()
  })
}

for (const url of ['', 'a', '127.0.0.1:4000', 'http://', 'http://a:99999', 'http://a b', 'http://a\\api']) {
  void test(`${JSON.stringify(url)} is no address`, (t) => {
    t.same([...new Set(faultPaths({ 'upstream.url': url }))], ['upstream.url'])
    t.end()
  })
}

for (const [written, path] of [
  ['/', ''],
  ['/api', '/api'],
  ['/api/copilotkit', '/api/copilotkit'],
  ['/a.b/c-d/~e_1', '/a.b/c-d/~e_1'],
] as const) {
  void test(`${written} is a base path`, (t) => {
    const { upstream } = accepted({ 'upstream.basePath': written, 'upstream.publicPath': written }).config
    t.equal(upstream?.basePath, path)
    t.equal(upstream?.publicPath, path)
    t.end()
  })
}

for (const path of [
  '',
  'api',
  '/api/',
  '//',
  '/api//x',
  '/a/../b',
  '/.',
  '/..',
  '/.hidden',
  '/a b',
  '/a%2Fb',
  '/a?x',
  '/a#x',
  '/a\\b',
  '/ä',
  '/a;b',
  '/api\n',
]) {
  void test(`${JSON.stringify(path)} is no base path`, (t) => {
    for (const key of ['upstream.basePath', 'upstream.publicPath']) {
      t.match(faultsIn({ [key]: path }), [{ path: key, message: 'is not a base path', hint: /\/api\/copilotkit/ }])
    }
    t.end()
  })
}
