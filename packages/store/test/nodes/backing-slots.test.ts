/** The views of backing nodes and of the nodes on them. */

import { expect, it } from '@jest/globals';
import { printBackingData, type Node } from '@nodepool/core';
import { nodeWith } from '@nodepool/core/testing';
import { backingSlots, NodeEntry, slotText } from '../../src/index.js';

const entryOf = (node: Node): NodeEntry => new NodeEntry({ value: node } as never, 0, true);
const data = {
  owner: 'NodePool:metastatic:meta:1',
  label: 'small',
  slots: 8,
  failed: false,
  reason: null,
  launched: 1,
  idle: null,
  used: new Map([[2, { node: '0000000003', attempt: null, pool: null, installation: null }]]),
};
const nodes = {
  ofProvider: (provider: string) => {
    const user = nodeWith({ id: '0000000004', driver_data: { backing_node: '0000000001', slot: 0 } });
    const other = nodeWith({ id: '0000000005', driver_data: { backing_node: '0000000009', slot: 1 } });
    return provider === 'meta:1' ? [entryOf(user), entryOf(other)] : [];
  },
};

it('a backing node has the slots of its record and those that only its nodes record', () => {
  const node = nodeWith({ id: '0000000001', state: 'in-use', user_data: printBackingData(data) });
  expect(backingSlots(nodes, entryOf(node))).toEqual({
    label: 'small',
    slots: 8,
    used: new Map([
      [0, '0000000004'],
      [2, '0000000003'],
    ]),
    closed: undefined,
    text: '2 of 8 used',
  });
});

it('a backing node that gets no further nodes says why', () => {
  const userData = printBackingData({ ...data, failed: true, reason: 'its login failed' });
  const node = nodeWith({ id: '0000000001', state: 'in-use', user_data: userData });
  expect(backingSlots(nodes, entryOf(node))?.closed).toBe('its login failed');
});

it('other nodes have no slots, whatever their requestors store with them', () => {
  for (const userData of [null, 'text', '{"owner": 1}', '{"owner": "x"', '{"owner": "x", "label": "y", "slots": -1}']) {
    expect(backingSlots(nodes, entryOf(nodeWith({ state: 'in-use', user_data: userData })))).toBeUndefined();
  }
});

it('a node on a backing node names its slot', () => {
  const node = nodeWith({ driver_data: { backing_node: '0000000001', slot: 3, metadata: {} } });
  expect(slotText(node)).toBe('slot 3 of node 0000000001');
  expect(slotText(nodeWith({}))).toBeUndefined();
});
