/** The check of the writing finds phrases where people read them, and docs/contributing/writing.md lists them all. */
import { test } from 'tap'
import { PHRASES, SEARCHES } from '../../testing/writing/phrases.ts'
import { median, sentences, textOf, wordsOf } from '../../testing/writing/texts.ts'
import { code, page, rows, section } from './markdown.ts'

/** The phrases that are found in a text. */
function found(text: string): readonly string[] {
  return SEARCHES.filter(({ search }) => text.match(search) !== null).map(({ phrase }) => phrase)
}

void test('the page lists the phrases of the check', (t) => {
  const written = rows(section(page('docs/contributing/writing.md'), 'Phrases')).map(([phrase, write]) => [code(phrase), write])
  t.same(
    written,
    PHRASES.map(({ phrase, write }) => [phrase, write]),
  )
  t.end()
})

void test('each phrase is found', (t) => {
  const samples = [
    'The gateway stands in front of the runtime.',
    'It stands in the table.',
    'The body is written anew.',
    'This mends it.',
    'The lease is let go of.',
    'It comes to an end.',
    'The policy is put in force.',
    'It goes by the address.',
    'This holds for all rules.',
    'The user takes leave.',
    'The issuer is away.',
    'With the words of the page.',
    'Whoever asks is refused.',
    'Nobody reads it.',
    'Somebody reads it.',
    'Everybody reads it.',
    'Anybody reads it.',
    'That which remains.',
    'The user to whom it belongs.',
    'What is unknown is refused.',
  ]
  t.same(
    samples.map((sample) => found(sample)),
    PHRASES.map(({ phrase }) => [phrase]),
  )
  t.end()
})

void test('plain texts have none', (t) => {
  const samples = [
    'Threadwarden proxies the runtime; a stand-in answers, and JWT stands for JSON Web Token.',
    'We recommend an amendment of the commend.',
    'What is the upstream? The log line says what is wrong.',
    'The cache holds in memory the last 100 tokens. The file holds a key.',
    'The request is written again, word by word.',
    'Welcome to the API.',
  ]
  for (const sample of samples) t.same(found(sample), [], sample)
  t.end()
})

void test('a phrase is found in what people read, on its own line', (t) => {
  const lineOf = (name: string, text: string): readonly number[] =>
    SEARCHES.flatMap(({ search }) =>
      Array.from(textOf(name, text).matchAll(search), ({ index }) => text.slice(0, index).split('\n').length),
    )
  t.same(lineOf('a.md', '# One\n\n```sh\nnobody\n```\n\n`nobody` [a](nobody.md)\n\nnobody\n'), [9])
  t.same(lineOf('a.yaml', 'user: nobody\nurl: a#nobody\n# nobody\nkey: 1 # nobody\n'), [3, 4])
  const source =
    "const nobody = 'nobody'\n// put in\n// force\nconst a = 'tell nobody'\nconst b = `${a} is\n away ${nobody}`\n/* `nobody` */\n"
  t.same(lineOf('a.ts', source).toSorted(), [2, 4, 5])
  t.end()
})

void test('sentences are those of the prose', (t) => {
  const text =
    '# A heading of a page\n\nOne two three. Four `five six` seven!\nEight nine ten.\n\n| a | b c d |\n\n- Eleven twelve thirteen\n- and fourteen fifteen [sixteen](x.md)\n'
  t.same(sentences(text).map(wordsOf), [3, 3, 3, 3, 4])
  t.equal(median([5, 1, 3]), 3)
  t.equal(median([4, 1, 2, 3]), 2.5)
  t.end()
})
