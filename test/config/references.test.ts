/** `${env:NAME}` and `${file:/path}`: how secrets get in without standing in the file. One that leads nowhere is a fault. */
import { test } from 'tap'
import { accepted, faultsIn, type Changes, type Surroundings } from '../../testing/support/configuration.ts'

const token = (value: string): Changes => ({ 'upstream.headers': { 'x-token': value } })
const valueOf = (value: string, around: Surroundings): string | undefined =>
  accepted(token(value), around).config.upstream?.headers['x-token']

void test('a variable of the environment is filled in', (t) => {
  t.equal(valueOf('${env:TOKEN}', { environment: { TOKEN: 's3cret' } }), 's3cret')
  t.equal(valueOf('${env:EMPTY}', { environment: { EMPTY: '' } }), '', 'an empty one too')
  t.end()
})

void test('a file is filled in without the newline at its end', (t) => {
  const read = (text: string) => valueOf('${file:token}', { files: { token: text } })
  t.equal(read('s3cret'), 's3cret')
  t.equal(read('s3cret\n'), 's3cret')
  t.equal(read('s3cret\r\n'), 's3cret')
  t.equal(read(' s3cret \n'), ' s3cret ', 'and nothing else is trimmed')
  t.match(
    faultsIn(token('${file:token}'), { files: { token: 's3cret\n\n' } }),
    [{ path: 'upstream.headers.x-token' }],
    'one only',
  )
  t.end()
})

void test('references may stand anywhere inside a string, and in any string', (t) => {
  const environment = { HOST: 'upstream.internal', PORT: '4000', LEVEL: 'debug', AUDIENCE: 'chat' }
  const { config } = accepted(
    {
      'upstream.url': 'http://${env:HOST}:${env:PORT}',
      'upstream.headers': { authorization: 'Bearer ${file:token}, ${env:HOST}' },
      'authentication.issuers.corp.audiences': ['${env:AUDIENCE}-eu'],
      'log.level': '${env:LEVEL}',
      'listen.port': '${env:PORT}',
    },
    { environment, files: { token: 'abc\n' } },
  )
  t.equal(config.upstream?.url, 'http://upstream.internal:4000')
  t.equal(config.upstream?.headers['authorization'], 'Bearer abc, upstream.internal')
  t.same(config.authentication.issuers['corp']?.audiences, ['chat-eu'])
  t.equal(config.log.level, 'debug')
  t.equal(config.listen.port, 4000)
  t.end()
})

void test('what a reference brings is not read again', (t) => {
  const environment = { TOKEN: 'a ${env:OTHER} $& $1', OTHER: 'no' }
  t.equal(valueOf('${env:TOKEN}', { environment }), 'a ${env:OTHER} $& $1')
  t.end()
})

void test('a dollar sign alone is a dollar sign', (t) => {
  t.equal(valueOf('$5 {a} $HOME ${', {}), '$5 {a} $HOME ${')
  t.end()
})

for (const [reference, message, hint] of [
  ['${env:NOPE}', 'the environment has no NOPE', 'set it, or remove the reference'],
  ['${file:nope}', 'the file nope does not exist', 'check the path'],
  ['${vault:a/b}', '${vault:a/b} is not a reference', 'write ${env:NAME} or ${file:/path}'],
  ['${TOKEN}', '${TOKEN} is not a reference', 'write ${env:NAME} or ${file:/path}'],
  ['${ENV:TOKEN}', '${ENV:TOKEN} is not a reference', 'write ${env:NAME} or ${file:/path}'],
  ['${}', '${} is not a reference', 'write ${env:NAME} or ${file:/path}'],
] as const) {
  void test(`${reference} is a fault at the place where it stands`, (t) => {
    const around = { environment: { TOKEN: 'x' } }
    t.match(faultsIn(token(reference), around), [{ path: 'upstream.headers.x-token', message, hint, line: /^\d+$/ }])
    t.match(faultsIn(token(`a ${reference} b`), around), [{ message }])
    t.end()
  })
}

void test('a name that every object has is no variable', (t) => {
  for (const name of ['constructor', 'toString', '__proto__']) {
    t.match(faultsIn(token(`\${env:${name}}`), { environment: process.env }), [{ message: `the environment has no ${name}` }])
  }
  t.end()
})
