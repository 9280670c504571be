/** `nodepool init` with the example cloud and static machines; each driver's contract tests cover its own guide. */

import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { SiteGuide } from '@nodepool/core';
import { run } from '../src/index.js';
import { settingsOf } from '../src/init/answers.js';
import { CapturedOutput } from './console.js';

let folder: string;
let file: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nodepool-init-test-'));
  file = join(folder, 'nodepool.yaml');
});

afterEach(() => rm(folder, { recursive: true }));

async function cli(
  args: readonly string[],
  answers?: readonly string[],
): Promise<{ readonly code: number; readonly out: CapturedOutput; readonly questions: readonly string[] }> {
  const out = new CapturedOutput();
  const questions: string[] = [];
  const rest = [...(answers ?? [])];
  const ask = async (question: string): Promise<string> => {
    questions.push(question);
    const answer = rest.shift();
    if (answer === undefined) throw new Error(`an unexpected question: ${question}`);
    return answer;
  };
  const io = { out, env: {}, interrupted: new AbortController().signal };
  const code = await run(['-c', file, ...args], answers === undefined ? io : { ...io, ask });
  return { code, out, questions };
}

const EXAMPLE = ['init', '--driver', 'example', '--machine-type', 'small', '--image', 'debian-12'];

it('writes a configuration that config-validate accepts, and asks nothing without a terminal', async () => {
  const { code, out } = await cli([...EXAMPLE, '--label', 'ci', '--zookeeper', 'zk01:2281', '--max-servers', '5']);
  expect([code, out.noted]).toEqual([0, expect.stringContaining(`Wrote ${file}`)]);
  const text = await readFile(file, 'utf8');
  expect(text).toContain('host: zk01\n    port: 2281');
  expect(text).toContain('max-servers: 5');
  expect(text).toContain('username: debian');
  expect((await cli(['config-validate'])).out.printed).toBe('the configuration is valid');
});

it('explains each key with the words of the reference, and names other machine types', async () => {
  await cli(EXAMPLE);
  const text = await readFile(file, 'utf8');
  expect(text).toContain('# Maximum nodes of the pool.');
  expect(text).toMatch(/size: small # .*others: /);
  expect(text).toMatch(/# No zone is set; the cloud has: /);
});

it('asks on a terminal for what is missing, with the lists of the cloud', async () => {
  const { code, out, questions } = await cli(['init', '--driver', 'example'], ['zk.example.org', '2', '', 'ci', '']);
  expect([code, out.noted]).toEqual([0, expect.stringContaining('Machine types of the cloud:\n  1. ')]);
  expect(questions.map((question) => question.replace(/ \[.*/, ''))).toEqual([
    'Address of a ZooKeeper server',
    'Machine type, by number or name',
    'Image, by number or name',
    'Name of the label',
    'User name for logins',
  ]);
  expect((await cli(['config-validate'])).code).toBe(0);
});

it('names the missing option and the entries of the cloud without a terminal, and writes nothing', async () => {
  const { code, out } = await cli(['init', '--driver', 'example', '--image', 'debian-12']);
  expect(code).toBe(1);
  expect(out.noted).toMatch(/choose the machine type with --machine-type; the cloud has:\n {2}1\. /);
  expect(await readdir(folder)).toEqual([]);
});

it('names all missing and wrong options in one run without a terminal', async () => {
  const { code, out } = await cli(['init', '--driver', 'example', '--zone', 'zone-9']);
  expect(code).toBe(1);
  expect(out.noted).toMatch(/choose the machine type with --machine-type;/);
  expect(out.noted).toMatch(/the cloud has no zone "zone-9";/);
});

it('reads a public key from the file that an answer names', async () => {
  const guide: SiteGuide = {
    settings: [
      { key: 'key', question: 'key', publicKey: true },
      { key: 'name', question: 'name' },
    ],
    choices: {},
    section: () => ({}),
  };
  const asking = { out: new CapturedOutput(), ask: undefined, interrupted: new AbortController().signal };
  const key = join(folder, 'id.pub');
  await writeFile(key, 'ssh-ed25519 AAAA me@laptop\n');
  const name = 'laptop.pub';
  expect(await settingsOf(asking, guide, { key, name })).toEqual({ key: 'ssh-ed25519 AAAA me@laptop', name });
  const missing = { key: `${folder}/missing.pub`, name };
  await expect(settingsOf(asking, guide, missing)).rejects.toThrow(/cannot be read: there is no such file/);
});

it('refuses a machine type that the cloud does not have', async () => {
  const { code, out } = await cli([...EXAMPLE, '--machine-type', 'huge']);
  expect([code, out.noted]).toEqual([1, expect.stringContaining('the cloud has no machine type "huge"; it has:')]);
  expect(await readdir(folder)).toEqual([]);
});

it('replaces an existing file only with --force', async () => {
  await writeFile(file, 'precious');
  const refused = await cli(EXAMPLE);
  expect([refused.code, refused.out.noted]).toEqual([1, expect.stringContaining('--force')]);
  expect(await readFile(file, 'utf8')).toBe('precious');
  expect((await cli([...EXAMPLE, '--force'])).code).toBe(0);
  expect(await readFile(file, 'utf8')).toContain('providers:');
});

it('adds further keys of the section with the types of YAML, and reports those that the driver does not have', async () => {
  expect((await cli([...EXAMPLE, '--set', 'rate=5', '--set', 'priority=7'])).code).toBe(0);
  expect(await readFile(file, 'utf8')).toMatch(/rate: 5\n[\s\S]*priority: 7\n/);
  const { code, out } = await cli([...EXAMPLE, '--force', '--set', 'colour=red']);
  expect([code, out.noted]).toEqual([1, expect.stringContaining('colour')]);
});

it('writes machines of the driver static', async () => {
  const { code } = await cli(['init', '--driver', 'static', '--set', 'hosts=10.0.0.1, 10.0.0.2', '--label', 'rack']);
  expect(code).toBe(0);
  const text = await readFile(file, 'utf8');
  expect(text).toMatch(/name: 10\.0\.0\.1\n[\s\S]*name: 10\.0\.0\.2\n/);
  expect((await cli(['config-validate'])).code).toBe(0);
});
