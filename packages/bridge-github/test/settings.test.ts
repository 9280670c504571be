/** The settings: read, refused with places and reasons, and followed. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { silentLogger, silentMetrics, systemClock, TaskSupervisor } from '@nodepool/core';
import { LiveSettings } from '@nodepool/daemon';
import { settingsSource } from '../src/settings/settings-source.js';
import { readSettings } from '../src/settings/settings.js';

let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodepool-bridge-settings-'));
  file = join(folder, 'github.yaml');
});
afterEach(() => rmSync(folder, { recursive: true }));

const MINIMAL = `
installations:
  - name: acme
    url: https://github.com/acme
    token: token.txt
    scale-sets:
      - name: linux
        node-label: debian
`;

async function problemsOf(text: string): Promise<string> {
  writeFileSync(file, text);
  return await readSettings(file).then(
    () => '',
    (error: unknown) => (error instanceof Error ? error.message : ''),
  );
}

it('defaults are filled in, and paths are relative to the file', async () => {
  writeFileSync(file, MINIMAL);
  const { installations } = await readSettings(file);
  expect(installations).toMatchObject([
    {
      credentials: { kind: 'token', file: join(folder, 'token.txt') },
      scaleSets: [{ labels: ['linux'], runnerGroup: 'default', maxRunners: 100, startTimeoutMs: 180_000 }],
    },
  ]);
});

it('hooks become variables of the runner', async () => {
  writeFileSync(file, `${MINIMAL}        hook-before-job: /opt/before.sh\n        environment: {A: b}\n`);
  const [installation] = (await readSettings(file)).installations;
  const environment = { A: 'b', ACTIONS_RUNNER_HOOK_JOB_STARTED: '/opt/before.sh' };
  expect(installation?.scaleSets[0]?.environment).toEqual(environment);
});

describe('refused', () => {
  it.each([
    ['an unknown key', MINIMAL.replace('node-label', 'node-labels'), 'did you mean "node-label"?'],
    ['plain http', MINIMAL.replace('https:', 'http:'), 'expected an https address'],
    ['no organization', MINIMAL.replace('/acme', ''), 'the page of an organization, a repository or an enterprise'],
    ['no login', MINIMAL.replace('    token: token.txt\n', ''), 'exactly one of the keys app or token'],
    ['a minimum above the maximum', `${MINIMAL}        min-runners: 101\n`, 'at most "max-runners"'],
    ['a name for a path', MINIMAL.replace('name: acme', 'name: a/b'), 'installations[0].name'],
  ])('%s', async (_what, text, expected) => {
    const problems = await problemsOf(text);
    expect(problems).toContain(expected);
    expect(problems).toMatch(/github\.yaml:\d+:\d+/);
  });

  it('two scale sets of one name', async () => {
    const twice = `${MINIMAL}      - name: Linux\n        node-label: fedora\n`;
    expect(await problemsOf(twice)).toContain('scale-sets[1].name: expected a name of its own');
  });
});

it('changed settings are applied, and refused ones change nothing', async () => {
  writeFileSync(file, MINIMAL);
  const tasks = new TaskSupervisor(systemClock, () => undefined);
  const watch = () => ({ ready: () => Promise.resolve(), close: () => Promise.resolve() });
  const options = {
    ...settingsSource(file),
    clock: systemClock,
    log: silentLogger,
    metrics: silentMetrics,
    tasks,
    watch,
  };
  const live = new LiveSettings(await readSettings(file), options);
  const seen: number[] = [];
  live.onChange(({ installations }) => seen.push(installations[0]?.scaleSets[0]?.maxRunners ?? 0));
  writeFileSync(file, `${MINIMAL}        max-runners: 7\n`);
  await live.reload();
  writeFileSync(file, 'installations: 5\n');
  await live.reload();
  expect(seen).toEqual([7]);
  expect(live.current.installations[0]?.scaleSets[0]?.maxRunners).toBe(7);
  await live.stop();
});

it('the settings of docs/github-actions.md are valid', async () => {
  const page = readFileSync(join(__dirname, '..', '..', '..', 'docs', 'github-actions.md'), 'utf8');
  const [, block = ''] = /```yaml\n([\s\S]*?)```/.exec(page) ?? [];
  writeFileSync(file, block.replaceAll(/^ {3}/gm, ''));
  const { installations } = await readSettings(file);
  expect(installations).toMatchObject([{ name: 'acme', scaleSets: [{ labels: ['linux', 'x64'] }] }]);
});
