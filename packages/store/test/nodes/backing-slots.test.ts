/** The views of backing nodes and of the nodes on them. */

import { expect, it } from '@jest/globals';
import { printBackingData, type Node } from '@nodepool/core';
import { nodeWith } from '@nodepool/core/testing';
import { backingSlots, damagedBackingNodes, NodeEntry, slotText } from '../../src/index.js';

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
    owner: 'NodePool:metastatic:meta:1',
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

it('a backing node with damaged data has the slots that its nodes record', () => {
  const requestor = 'NodePool:metastatic:meta:1';
  const node = nodeWith({ id: '0000000001', state: 'in-use', requestor, user_data: '{"owner"' });
  expect(backingSlots(nodes, entryOf(node))).toMatchObject({
    label: null,
    slots: null,
    used: new Map([[0, '0000000004']]),
    closed: expect.stringContaining('its user_data is damaged'),
    text: '1 used',
  });
});

it('a node is damaged only if a requestor of backing nodes, or its data, claims it, and it is locked', () => {
  const requestor = 'NodePool:metastatic:meta';
  const text = printBackingData({ ...data, owner: requestor });
  const cases: readonly (readonly [Partial<Node>, boolean])[] = [
    [{ requestor, user_data: text }, true],
    [{ requestor, user_data: 'junk' }, true],
    [{ requestor, user_data: 'junk' }, false],
    [{ requestor: 'zuul', user_data: 'junk' }, true],
    [{ requestor: 'NodePool:min-ready', user_data: null }, true],
  ];
  const entries = cases.map(
    ([facts, isLocked], index) =>
      new NodeEntry({ value: nodeWith({ ...facts, id: String(index), state: 'in-use' }) } as never, 0, isLocked),
  );
  const inState = (state: Node['state']): NodeEntry[] => (state === 'in-use' ? entries : []);
  expect(damagedBackingNodes({ inState }).map(({ id }) => id)).toEqual(['1']);
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
