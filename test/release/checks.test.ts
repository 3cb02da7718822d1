/** Which releases are refused. */
import { test } from 'tap'
import { checkRelease } from '../../testing/release/checks.ts'
import { makeRepository } from '../../testing/release/repository.ts'

void test('a clean worktree at its tag may be released', (t) => {
  const { root, remove } = makeRepository()
  t.teardown(remove)
  const release = checkRelease(root, 'v1.2.3')
  t.match(release, { tag: 'v1.2.3', version: '1.2.3', commit: /^[0-9a-f]{40}$/, notes: '- A change.' })
  t.ok((release as { epoch: number }).epoch > 1_700_000_000)
  t.end()
})

const CHANGELOG = '# Changelog\n\n## [1.2.3] - DATE\n\n- A change.\n'

/** What a commit has, and the only reason against its release. */
const CASES: readonly (readonly [what: string, files: Readonly<Record<string, string>>, reason: string])[] = [
  [
    'another version in package.json',
    { 'package.json': '{"version":"1.2.4"}' },
    'package.json has 1.2.4, the tag has 1.2.3: change one of them',
  ],
  [
    'another version in package-lock.json',
    { 'package-lock.json': '{"version":"1.2.3","packages":{"":{"version":"1.2.2"}}}' },
    'package-lock.json: packages has 1.2.2, the tag has 1.2.3: change one of them',
  ],
  [
    'another version of the chart',
    { 'deploy/helm/chart/Chart.yaml': 'version: 1.2.2\nappVersion: 1.2.3\n' },
    'deploy/helm/chart/Chart.yaml: version has 1.2.2, the tag has 1.2.3: change one of them',
  ],
  [
    'a chart of another program',
    { 'deploy/helm/chart/Chart.yaml': 'version: 1.2.3\nappVersion: 1.2.2\n' },
    'deploy/helm/chart/Chart.yaml: appVersion has 1.2.2, the tag has 1.2.3: change one of them',
  ],
  [
    'a manifest with another image',
    { 'deploy/kubernetes/pod.yaml': 'image: ghcr.io/threadwarden/threadwarden:1.2.2\n' },
    'deploy/kubernetes/pod.yaml: image has 1.2.2, the tag has 1.2.3: change one of them',
  ],
  [
    'a page with another image',
    { 'docs/page.md': 'docker run ghcr.io/threadwarden/threadwarden:latest\n' },
    'docs/page.md: image has latest, the tag has 1.2.3: change one of them',
  ],
  [
    'an unreleased section',
    { 'CHANGELOG.md': CHANGELOG.replace('DATE', 'unreleased') },
    'the first section of CHANGELOG.md is "unreleased": write its date, as YYYY-MM-DD',
  ],
  [
    'a section without a date',
    { 'CHANGELOG.md': CHANGELOG.replace(' - DATE', '') },
    'the first section of CHANGELOG.md is "unreleased": write its date, as YYYY-MM-DD',
  ],
  [
    'a section for another version',
    { 'CHANGELOG.md': CHANGELOG.replace('DATE', '2026-11-25').replace('1.2.3', '1.3.0') },
    'CHANGELOG.md has 1.3.0, the tag has 1.2.3: change one of them',
  ],
  [
    'an empty section',
    { 'CHANGELOG.md': '# Changelog\n\n## [1.2.3] - 2026-11-25\n' },
    'the first section of CHANGELOG.md is empty: write what has changed',
  ],
]

for (const [what, files, reason] of CASES) {
  void test(`refused: ${what}`, (t) => {
    const { root, remove } = makeRepository(files)
    t.teardown(remove)
    t.same(checkRelease(root, 'v1.2.3'), [reason])
    t.end()
  })
}

void test('refused: a worktree with changes, also with new files', (t) => {
  const { root, write, remove } = makeRepository()
  t.teardown(remove)
  write('new.txt', '')
  t.same(checkRelease(root, 'v1.2.3'), ['the worktree has changes: commit or remove them (?? new.txt)'])
  write('deploy/kubernetes/pod.yaml', '')
  t.match(checkRelease(root, 'v1.2.3'), [/^the worktree has changes: .*pod\.yaml/])
  t.end()
})

void test('refused: a tag of another commit, and one that does not exist', (t) => {
  const { root, write, git, remove } = makeRepository()
  t.teardown(remove)
  write('more.txt', '')
  git('add', '.')
  git('commit', '--quiet', '--message', 'more')
  t.same(checkRelease(root, 'v1.2.3'), ['v1.2.3 is another commit: git checkout v1.2.3'])
  t.match(checkRelease(root, 'v1.2.4'), ['there is no tag v1.2.4: git tag --sign v1.2.4'])
  // A branch is no tag.
  git('tag', '--delete', 'v1.2.3')
  git('branch', 'v1.2.3')
  t.same(checkRelease(root, 'v1.2.3'), ['there is no tag v1.2.3: git tag --sign v1.2.3'])
  t.end()
})

void test('refused: a tag that is no version', (t) => {
  const { root, remove } = makeRepository()
  t.teardown(remove)
  for (const tag of ['1.2.3', 'v1.2', 'v1.2.3 ', 'latest', '--all']) {
    t.same(checkRelease(root, tag), [`the tag ${tag} is not vMAJOR.MINOR.PATCH`])
  }
  t.end()
})
