/** JUnit XML is well-formed, whatever stands in names and messages. */
import { test } from 'tap'
import { junitOf } from '../../src/tools/simulate/junit.ts'

const HOSTILE = '<a b="c">&amp;\'\u0000\u001b[31m\ud800\ufffe\u0085\n]]>-->é😀'

void test('nothing of a text is markup, and nothing is a character that XML does not have', (t) => {
  const xml = junitOf([{ file: HOSTILE, results: [{ name: HOSTILE, line: 1, failures: [HOSTILE] }], faults: [HOSTILE] }])
  t.notMatch(xml, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\ufffe\uffff]/)
  t.ok(xml.isWellFormed())
  const tags = xml.match(/<[^>]*>/g) ?? []
  t.same(
    tags.map((tag) => /^<([?/]?\w+)/.exec(tag)?.[1]),
    [
      '?xml',
      'testsuites',
      'testsuite',
      'testcase',
      'error',
      '/error',
      '/testcase',
      'testcase',
      'failure',
      '/failure',
      '/testcase',
      '/testsuite',
      '/testsuites',
    ],
  )
  for (const tag of tags.slice(2)) t.match(tag, /^<\/?\w+(?: \w+="[^"<&]*(?:&(?:amp|lt|gt|quot|apos|#10);[^"<&]*)*")*\/?>$/)
  const said = '&lt;a b=&quot;c&quot;&gt;&amp;amp;&apos;\ufffd\ufffd[31m\ufffd\ufffd\ufffd&#10;]]&gt;--&gt;é😀'
  t.equal(xml.split(said).length - 1, 8, 'what can be said is said')
  t.end()
})
