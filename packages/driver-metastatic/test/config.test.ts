/** Problems of settings, and the limit of slots: the record of a backing node must fit into one znode. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { formatProblem, loadConfig } from '@nodepool/config';
import type { JsonObject, SlotUse } from '@nodepool/core';
import { nodeWith } from '@nodepool/core/testing';
import { driver } from '../src/index.js';
import { MAX_SLOTS } from '../src/schema.js';
import { dataWith, withLabel } from './world.js';

/** ZooKeeper's default limit of a znode and of a request, in bytes. */
const ZNODE_BYTES = 0xfffff;

/** Returns the problems of a configuration whose label has these settings. */
async function problemsOf(settings: JsonObject): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'metastatic-config-'));
  const file = join(folder, 'nodepool.yaml');
  const labels = [{ name: 'small' }, { name: 'large' }];
  const providers = [withLabel(settings)];
  writeFileSync(file, JSON.stringify({ 'zookeeper-servers': [{ host: 'zk' }], labels, providers }));
  const result = await loadConfig({ file, secureFile: undefined, env: {}, discoverDriver: async () => driver });
  rmSync(folder, { recursive: true });
  return result.ok ? [] : result.problems.map(formatProblem);
}

it('more slots than the record of a backing node can have are refused, with the reason', async () => {
  expect(await problemsOf({ 'max-parallel-jobs': MAX_SLOTS })).toEqual([]);
  expect(await problemsOf({ 'max-parallel-jobs': MAX_SLOTS + 1 })).toEqual([
    expect.stringMatching(/at most 500, found 501; .*ZooKeeper limits a record to 1 MB/),
  ]);
});

it('a backing label that does not exist is refused with one sentence', async () => {
  expect(await problemsOf({ 'backing-label': 'nowhere' })).toEqual([
    expect.stringMatching(/: expected the name of a label in the top-level `labels`, found "nowhere"; add it there$/),
  ]);
});

it('the record of a backing node with all its slots in use fits into a znode, whatever the names', () => {
  const use = (slot: number): SlotUse => ({
    node: String(slot).padStart(10, '0'),
    attempt: '00000000-0000-0000-0000-000000000000',
    pool: '\u{1f4a1}'.repeat(255),
    installation: '00000000-0000-0000-0000-000000000000',
  });
  const used = new Map(Array.from({ length: MAX_SLOTS }, (_, slot) => [slot, use(slot)]));
  const record = JSON.stringify(nodeWith({ user_data: dataWith({ slots: MAX_SLOTS, used }) }));
  // The rest is left for attributes, host keys and the other operations of a transaction.
  expect(new TextEncoder().encode(record).length).toBeLessThan(0.7 * ZNODE_BYTES);
});
