import { describe, expect, it } from '@jest/globals';
import {
  displayWidth,
  labelList,
  nodeList,
  requestList,
  toJsonObjects,
  toTable,
  UnknownFieldError,
} from '@nodepool/store';
import { nodeEntry, nodesOf, pool, requestEntry } from './records.js';

const NOW = 1_795_173_777_012;

describe('the list of nodes', () => {
  const held = nodeEntry(
    {
      id: '0000000012',
      state: 'hold',
      state_time: NOW / 1000 - 93_784,
      provider: 'cloud-a',
      pool: 'main',
      type: ['small', 'big'],
      external_id: 'server-1',
      public_ipv4: '192.0.2.7',
      public_ipv6: '2001:db8::7',
      az: 'az1',
      connection_port: 22,
      comment: 'look at me',
      user_data: { build: 7 },
    },
    true,
  );

  it('prints the short form with the columns that scripts expect', () => {
    const table = toTable(nodeList(nodesOf(held), { columns: 'short', now: NOW }));
    expect(table.split('\n')).toEqual([
      '+------------+----------+-----------+-----------+-------------+-------------+-------+-------------+--------+',
      '| ID         | Provider | Label     | Server ID | Public IPv4 | IPv6        | State | Age         | Locked |',
      '+------------+----------+-----------+-----------+-------------+-------------+-------+-------------+--------+',
      '| 0000000012 | cloud-a  | small,big | server-1  | 192.0.2.7   | 2001:db8::7 | hold  | 01:02:03:04 | locked |',
      '+------------+----------+-----------+-----------+-------------+-------------+-------+-------------+--------+',
    ]);
  });

  it('has every field in JSON, labels as an array, the age as text', () => {
    const [row] = toJsonObjects(nodeList(nodesOf(held), { columns: 'all', now: NOW }));
    expect(row).toEqual({
      id: '0000000012',
      provider: 'cloud-a',
      label: ['small', 'big'],
      server_id: 'server-1',
      public_ipv4: '192.0.2.7',
      ipv6: '2001:db8::7',
      state: 'hold',
      age: '01:02:03:04',
      locked: 'locked',
      pool: 'main',
      hostname: null,
      private_ipv4: null,
      AZ: 'az1',
      username: null,
      connection_port: 22,
      launcher: null,
      allocated_to: null,
      hold_job: null,
      comment: 'look at me',
      user_data: { build: 7 },
      driver_data: null,
    });
  });

  it('is sorted by id, for any order of the store', () => {
    const nodes = nodesOf(nodeEntry({ id: '0000000010' }), nodeEntry({ id: '0000000002' }));
    expect(toJsonObjects(nodeList(nodes, { columns: ['id'], now: NOW }))).toEqual([
      { id: '0000000002' },
      { id: '0000000010' },
    ]);
  });

  it('never shows the credentials that some clouds store in the port', () => {
    const pod = nodeEntry({
      connection_port: { host: 'https://k8s.example', token: 'hush-hush' },
      external_id: 'pod-1',
    });
    const listing = nodeList(nodesOf(pod), { columns: 'all', now: NOW });
    expect(toTable(listing)).toContain('pod-1');
    expect(toTable(listing)).not.toContain('hush');
    expect(JSON.stringify(toJsonObjects(listing))).not.toContain('hush');
    expect(toJsonObjects(listing)[0]).toHaveProperty('connection_port', 'redacted');
  });

  it('finds the node with an id, or none', () => {
    const nodes = nodesOf(nodeEntry({ id: '0000000001' }), nodeEntry({ id: '0000000002' }));
    expect(nodeList(nodes, { columns: 'all', now: NOW, nodeId: '0000000002' }).rows).toHaveLength(1);
    expect(nodeList(nodes, { columns: 'all', now: NOW, nodeId: '0000000003' }).rows).toHaveLength(0);
  });

  it('shows only the requested fields, in the order of the list', () => {
    const listing = nodeList(nodesOf(held), { columns: ['state', 'id'], now: NOW });
    expect(toTable(listing).split('\n')[3]).toBe('| 0000000012 | hold  |');
    expect(Object.keys(toJsonObjects(listing)[0] ?? {})).toEqual(['id', 'state']);
  });

  it('reports the known fields when an unknown one is requested', () => {
    const ask = (): unknown => nodeList(nodesOf(), { columns: ['id', 'colour'], now: NOW });
    expect(ask).toThrow(UnknownFieldError);
    expect(ask).toThrow(/no field "colour".*there are: id, provider, label/);
  });

  it('prints its headers when it is empty', () => {
    expect(toTable(nodeList(nodesOf(), { columns: ['id', 'state'], now: NOW }))).toBe(
      ['+----+-------+', '| ID | State |', '+----+-------+', '+----+-------+'].join('\n'),
    );
  });

  it('shows an external id that is an object as JSON', () => {
    const node = nodesOf(nodeEntry({ external_id: { vm: 'a', group: 'b' } }));
    expect(toTable(nodeList(node, { columns: ['server_id'], now: NOW }))).toContain('| {"vm":"a","group":"b"} |');
    expect(toJsonObjects(nodeList(node, { columns: ['server_id'], now: NOW }))).toEqual([
      { server_id: { vm: 'a', group: 'b' } },
    ]);
  });

  it('escapes values that would break the table or control the terminal', () => {
    const listing = nodeList(nodesOf(nodeEntry({ comment: 'a\u001b[2Jb\nc\u202ed\u0085' })), {
      columns: ['comment'],
      now: NOW,
    });
    expect(toTable(listing).split('\n')).toHaveLength(5);
    expect(toTable(listing)).toContain('| a\\u001b[2Jb\\nc\\u202ed\\u0085 |');
  });

  it('aligns the borders around characters outside the first plane', () => {
    const lines = toTable(
      nodeList(nodesOf(nodeEntry({ comment: '🚀' })), { columns: ['id', 'comment'], now: NOW }),
    ).split('\n');
    expect(lines[3]).toBe('| 0000000001 | 🚀      |');
  });

  it('measures the width of text as terminals display it', () => {
    const widths: readonly (readonly [text: string, columns: number])[] = [
      ['debian', 6],
      ['Größe', 5],
      ['e\u0301', 1],
      ['日本語', 6],
      ['한국어', 6],
      ['ﾊﾝｶｸ', 4],
      ['ＡＢ', 4],
      ['🚀', 2],
      ['→', 1],
    ];
    expect(widths.map(([text]) => [text, displayWidth(text)])).toEqual(widths);
  });

  it('shows no negative age when the clocks of two machines differ', () => {
    const listing = nodeList(nodesOf(nodeEntry({ state_time: NOW / 1000 + 60 })), { columns: ['age'], now: NOW });
    expect(listing.rows).toEqual([['00:00:00:00']]);
  });
});

describe('the list of requests', () => {
  it('has the fields that scripts expect, lists as arrays', () => {
    const requests = {
      all: () => [
        requestEntry({
          id: '200-0000000042',
          node_types: ['small', 'small'],
          nodes: ['0000000001', '0000000002'],
          declined_by: ['pool-a'],
          requestor: 'zuul',
          relative_priority: 3,
          event_id: 'e1',
          state: 'fulfilled',
        }),
      ],
    };
    expect(toJsonObjects(requestList(requests, { columns: 'short', now: NOW }))).toEqual([
      {
        id: '200-0000000042',
        relative_priority: 3,
        state: 'fulfilled',
        requestor: 'zuul',
        node_types: ['small', 'small'],
        nodes: ['0000000001', '0000000002'],
        declined_by: ['pool-a'],
        event_id: 'e1',
      },
    ]);
    expect(toTable(requestList(requests, { columns: ['node_types', 'nodes'], now: NOW })).split('\n')[3]).toBe(
      '| small,small | 0000000001,0000000002 |',
    );
  });

  it('has the age and the tenant in the long form', () => {
    const requests = { all: () => [requestEntry({ created_time: NOW / 1000 - 90.5, tenant_name: 't1' })] };
    const list = requestList(requests, { columns: ['age', 'tenant_name', 'provider'], now: NOW });
    expect(toJsonObjects(list)).toEqual([{ age: Math.floor(NOW / 1000 - 90.5), tenant_name: 't1', provider: null }]);
    expect(toTable(list).split('\n')[3]).toBe('| 00:00:01:31 | t1     |          |');
  });

  it('is sorted in the order in which requests are served', () => {
    const requests = {
      all: () => [
        requestEntry({ id: '200-0000000001', relative_priority: 5 }),
        requestEntry({ id: '300-0000000000' }),
        requestEntry({ id: '200-0000000002', relative_priority: 1 }),
        requestEntry({ id: '100-0000000009' }),
      ],
    };
    expect(requestList(requests, { columns: ['id'], now: NOW }).rows.flat()).toEqual([
      '100-0000000009',
      '200-0000000002',
      '200-0000000001',
      '300-0000000000',
    ]);
  });
});

describe('the list of labels', () => {
  it('contains every label of the registered pools once, sorted by name', () => {
    const pools = { pools: () => [pool(['small', 'big']), pool(['small', 'arm'])] };
    expect(toJsonObjects(labelList(pools, { columns: 'all' }))).toEqual([
      { label: 'arm', provider: ['cloud'] },
      { label: 'big', provider: ['cloud'] },
      { label: 'small', provider: ['cloud'] },
    ]);
  });
});
