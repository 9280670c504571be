/** A store with ten thousand nodes. */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { NODE_STATES, type NodeData } from '@nodepool/core';
import { seededRandom } from '@nodepool/core/testing';
import type { NodeEntry, Store } from '@nodepool/store';
import { Simulation, bytes, expectSameNodes, given, nodeData } from './simulation.js';

let simulation: Simulation;

beforeEach(() => {
  simulation = new Simulation({ latencyMs: 0 });
});

afterEach(() => simulation.close());

const NODES = 10_000;
const PROVIDERS = ['cloud-a', 'cloud-b', 'cloud-c'];
const LABELS = ['small', 'large', 'huge'];

it('indexes equal a scan of all nodes, at first and after many random changes', async () => {
  const random = seededRandom(7);
  const pick = <T>(values: readonly T[]): T => given(values[Math.floor(random.next() * values.length)]);
  const randomNode = (): NodeData =>
    nodeData({
      state: pick(NODE_STATES),
      provider: pick(PROVIDERS),
      pool: pick(['main', 'other', null]),
      type: random.next() < 0.1 ? ['small', 'large'] : [pick(LABELS)],
      allocated_to: random.next() < 0.5 ? null : `100-${String(Math.floor(random.next() * 500)).padStart(10, '0')}`,
    });

  const writer = await simulation.store();
  for (let made = 0; made < NODES; made += 500) {
    await simulation.run(writer.nodes.create(Array.from({ length: 500 }, randomNode)));
  }
  await simulation.settled();
  const reader = await simulation.store();
  expect(reader.nodes.size).toBe(NODES);
  expectIndexes(reader);

  const ids = [...reader.nodes.all()].map(({ id }) => id);
  const storm = Array.from({ length: 5000 }, async () => {
    const path = `/nodepool/nodes/${pick(ids)}`;
    await simulation.other.set(path, bytes(JSON.stringify(randomNode())));
  });
  await simulation.run(Promise.all(storm));
  await simulation.settled();
  expectIndexes(reader);
  expectIndexes(writer);
  expectSameNodes(reader, writer);
});

/** Compares texts, because jest takes a second to compare lists of this length. */
function expectIndexes({ nodes }: Store): void {
  const all = [...nodes.all()];
  const ids = (entries: Iterable<NodeEntry>): string => [...entries].map(({ id }) => id).join('\n');
  const idsWhere = (holds: (entry: NodeEntry) => boolean): string => ids(all.filter(holds));
  expect(ids(all)).toBe(ids(all).split('\n').sort().join('\n'));
  for (const state of NODE_STATES) {
    expect(ids(nodes.inState(state))).toBe(idsWhere(({ node }) => node.state === state));
  }
  for (const provider of PROVIDERS) {
    expect(ids(nodes.ofProvider(provider))).toBe(idsWhere(({ node }) => node.provider === provider));
    const free = idsWhere((entry) => isFree(entry) && entry.node.provider === provider);
    expect(nodes.freeOf(provider).join('\n')).toBe(free);
    for (const label of LABELS) {
      expect(ids(nodes.available({ label, provider, pool: 'main' }))).toBe(
        idsWhere(
          (entry) =>
            isFree(entry) &&
            entry.node.provider === provider &&
            entry.node.pool === 'main' &&
            entry.node.type.includes(label),
        ),
      );
    }
  }
  for (const request of ['100-0000000003', '100-0000000499', 'nobody']) {
    expect(ids(nodes.allocatedTo(request))).toBe(idsWhere(({ node }) => node.allocated_to === request));
  }
}

function isFree({ node, locked }: NodeEntry): boolean {
  return node.state === 'ready' && !locked && node.allocated_to === null;
}
