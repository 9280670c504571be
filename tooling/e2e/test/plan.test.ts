/** `nodepool plan` replays the journal of a running launcher, in threads. */

import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { configFileOf, programPath, type Program } from '@nodepool/harness';
import { Site } from './site.js';

const REQUESTS = 3;

let site: Site;
let launcher: Program;
beforeAll(async () => {
  site = await Site.start();
  launcher = await site.launcher();
});
afterAll(() => site.stop());

async function nodepool(...args: readonly string[]): Promise<string> {
  const file = configFileOf({ folder: site.folder, name: launcher.name });
  const { stdout } = await promisify(execFile)(process.execPath, [programPath('nodepool'), '-c', file, ...args]);
  return stdout;
}

it('a launcher’s requests and launches are replayed', async () => {
  for (let index = 0; index < REQUESTS; index += 1) await nodepool('request', 'debian', '--hold', '1');
  const journal = await nodepool('journal');
  const lines = journal
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { readonly kind: string; readonly result?: string });
  expect(lines.filter(({ kind }) => kind === 'node')).toHaveLength(REQUESTS);
  expect(lines.filter(({ kind }) => kind === 'request')).toHaveLength(REQUESTS);
  expect(lines.filter(({ result }) => result === 'fulfilled')).toHaveLength(REQUESTS);

  const result = JSON.parse(await nodepool('plan', '--runs', '3', '--jobs', '2', '-o', 'json')) as object;
  expect(result).toMatchObject({
    day: { requests: REQUESTS, launches: REQUESTS },
    recorded: { debian: { requests: REQUESTS, failed: 0 } },
    configurations: [
      {
        name: 'as configured',
        labels: { debian: { requests: REQUESTS, failed: { most: 0 }, unanswered: { most: 0 } } },
      },
    ],
  });
  const file = join(site.folder, 'day.jsonl');
  await writeFile(file, journal);
  const again = await nodepool('plan', '--requests', file, '--runs', '3', '--jobs', '1', '-o', 'json');
  const { configurations } = JSON.parse(again) as { readonly configurations: unknown };
  expect(result).toMatchObject({ configurations });
});
