/** Conversion of records to and from the JSON of their znodes. */

import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { decodeComponent, requestCodec, type Source } from '@nodepool/store';
import type { Codec } from '../../src/codec/codec.js';
import { encodeComponent } from '../../src/components/component-codec.js';
import { buildCodec, uploadCodec } from '../../src/codec/image.js';
import { nodeCodec } from '../../src/codec/node.js';
import { isJsonObject, NODE_STATES, type NodeData } from '@nodepool/core';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const textOf = ({ data }: Source<unknown>): string => new TextDecoder().decode(data);

/** Reads the record of a znode with this JSON. */
function read<I extends object, D extends { state_time: number }>(
  codec: Codec<I, D>,
  identity: I,
  json: unknown,
  changedAt = 0,
): Source<I & D> {
  const decoded = codec.decode(bytes(typeof json === 'string' ? json : JSON.stringify(json)), identity, changedAt);
  if (!decoded.ok) throw new Error(decoded.reason);
  return decoded.source;
}

const node = { id: '0000000001' };
const request = { id: '200-0000000001' };

/** Texts of a member: its name with the quotes, and its value. */
interface MemberText {
  readonly name: string;
  readonly value: string;
}

const FIELD_NAMES = [
  'state_time',
  'type',
  'comment',
  'connection_port',
  'ssh_port',
  'external_id',
  'host_keys',
  'slot',
];
const MORE_NAMES = ['hold_expiration', 'attributes', 'resources', 'user_data', 'progress', 'cloud', 'created_time'];

const fieldValue = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom(null, 22, 'text', ['a', 'b'], { cores: 2 }, { kind: 'launch', attempt: 'a', machine: [1] }),
);

/** Records with some of the fields of a node, and one that nodes do not have. */
function nodeFields<V>(value: fc.Arbitrary<V>): fc.Arbitrary<Record<string, V>> {
  return fc.dictionary(fc.constantFrom(...FIELD_NAMES, ...MORE_NAMES, 'unknown'), value);
}

/** A name as other programs may write it: with any character escaped. */
const nameText = fc
  .tuple(fc.oneof(fc.constantFrom(...FIELD_NAMES, 'trace', 'odd "name"\\'), fc.string()), fc.nat(9))
  .map(([name, escaped]) => {
    const start = JSON.stringify(name.slice(0, escaped)).slice(0, -1);
    const code = name.charCodeAt(escaped).toString(16).padStart(4, '0');
    const rest = JSON.stringify(name.slice(escaped + 1)).slice(1);
    return escaped < name.length ? `${start}\\u${code}${rest}` : JSON.stringify(name);
  });

/** Values as other programs may write them, also numbers that JavaScript cannot represent. */
const valueText = fc.oneof(
  fc.json({ maxDepth: 3 }),
  fc.constantFrom('340282366920938463463374607431768211455', '1.50', '1E3', '-0', '[ 1 , "}" ]', '{"state" : null}'),
  fc.constantFrom('true', 'false', 'null', '[]', '{}', '""', '"null"', '"\\\\"', '"a, \\"b\\": {"'),
);

/** Members in any order, with the state at the end. */
const unusualMembers: fc.Arbitrary<readonly MemberText[]> = fc
  .array(fc.record({ name: nameText, value: valueText }), { maxLength: 12 })
  .map((members) => [...members, { name: '"state"', value: '"ready"' }]);

/** Members in the order of a new record, some of them missing or twice, with others between them. */
const usualMembers: fc.Arbitrary<readonly MemberText[]> = fc
  .array(fc.record({ place: fc.nat(40), name: nameText, value: valueText, isField: fc.boolean() }))
  .map((members) => {
    const created = JSON.parse(nodeCodec.create(read(nodeCodec, node, { state: 'ready' }).value)) as NodeData;
    const [state, ...fields] = Object.keys(created);
    const texts = members
      .toSorted((a, b) => a.place - b.place)
      .map(({ place, name, value, isField }) => {
        const field = fields[place];
        return { name: isField && field !== undefined ? JSON.stringify(field) : name, value };
      });
    return [{ name: JSON.stringify(state), value: '"ready"' }, ...texts];
  });

const nodeChange: fc.Arbitrary<Partial<NodeData>> = fc.record(
  {
    state: fc.constantFrom('ready', 'used'),
    comment: fc.constantFrom(null, 'mine', 'a "quoted" text'),
    slot: fc.constantFrom(null, 5),
    host_keys: fc.constantFrom([], ['key']),
    connection_port: fc.constantFrom(22, 19_885, null),
    progress: fc.constant(null),
  },
  { requiredKeys: [] },
);

/** Returns an object of these members, with the usual spaces between the tokens or with different ones. */
function textFrom(members: readonly MemberText[], isUsual: boolean): string {
  if (isUsual) return `{${members.map(({ name, value }) => `${name}: ${value}`).join(', ')}}`;
  const space = (index: number): string => ['', ' ', '\n', '\t '][index % 4] ?? '';
  const texts = members.map(({ name, value }, index) => {
    const [a, b, c, d] = [space(index), space(index + 1), space(index >> 1), space(index >> 2)];
    return `${a}${name}${b}:${c}${value}${d}`;
  });
  return ` {${texts.join(',')}} `;
}

/** Returns the members after a change: each changed one at its first place, or at the end. */
function changedMembers(members: readonly MemberText[], change: Partial<NodeData>): readonly MemberText[] {
  const wanted = new Map<string, string | undefined>(
    Object.entries(change).map(([name, value]) => [
      name,
      name === 'progress' && value === null ? undefined : JSON.stringify(value),
    ]),
  );
  const named = parsedValue(members, 'connection_port');
  const before = named === undefined ? parsedValue(members, 'ssh_port') : named;
  const port = change.connection_port === undefined ? before : change.connection_port;
  if (typeof port === 'number' || isJsonObject(port) || 'connection_port' in change)
    wanted.set('ssh_port', JSON.stringify(port));
  const written = new Set<string>();
  const kept = members.flatMap((each) => {
    const name = String(JSON.parse(each.name));
    const value = wanted.get(name);
    if (!wanted.has(name) || value === each.value) {
      written.add(name);
      return [each];
    }
    if (value === undefined || written.has(name)) return [];
    written.add(name);
    return [{ name: JSON.stringify(name), value }];
  });
  const added = [...wanted].flatMap(([name, value]) =>
    value === undefined || written.has(name) ? [] : [{ name: JSON.stringify(name), value }],
  );
  return [...kept, ...added];
}

/** Returns the value of a member as `JSON.parse` reads it: the last one of the name. */
function parsedValue(members: readonly MemberText[], name: string): unknown {
  const found = members.filter((each) => JSON.parse(each.name) === name).at(-1);
  return found === undefined ? undefined : JSON.parse(found.value);
}

/** Returns JSON text without the spaces between its tokens. */
function withoutSpaces(json: string): string {
  return json.replaceAll(/("(?:[^"\\]|\\.)*")|\s+/g, '$1');
}

describe('a changed record', () => {
  it('reads like the record that the change returned', () => {
    const source = read(nodeCodec, node, { state: 'ready', comment: 5, connection_port: 22, resources: { cores: 1 } });
    const changed = nodeCodec.change(source, { state: 'used', host_keys: ['key'], connection_port: { a: 1 } });
    const cached = nodeCodec.decode(changed.data, node, 0);
    expect(cached).toEqual({ ok: true, source: changed });
    expect(read(nodeCodec, node, textOf(changed), 0).value).toEqual(changed.value);
  });

  it('is the same object if its text stays the same', () => {
    const source = read(nodeCodec, node, '{"state": "ready", "comment": null}');
    expect(nodeCodec.change(source, { state: 'ready', comment: null })).toBe(source);
  });

  it('keeps unknown fields', () => {
    const source = read(nodeCodec, node, { state: 'ready', flavour: { a: [1, { b: null }] }, 'odd "name"\\': 'x' });
    expect(JSON.parse(textOf(nodeCodec.change(source, { state: 'used' })))).toEqual({
      state: 'used',
      flavour: { a: [1, { b: null }] },
      'odd "name"\\': 'x',
    });
  });

  it('keeps integers that are too large for a JavaScript number', () => {
    const text =
      '{"state": "requested", "node_types": [], "span_info": {"trace_id": 340282366920938463463374607431768211455, "start_time": 1795173742978561123}}';
    const written = textOf(requestCodec.change(read(requestCodec, request, text), { state: 'pending' }));
    expect(written).toContain('340282366920938463463374607431768211455');
    expect(written).toContain('1795173742978561123');
  });

  it('keeps the value of a field of the wrong type, unless that field is changed', () => {
    const raw = { state: 'ready', comment: 5, host_keys: 'none', resources: [1], slot: 'first', provider: {} };
    const source = read(nodeCodec, node, raw);
    expect(source.value).toMatchObject({ comment: null, host_keys: [], resources: null, slot: null, provider: null });
    const changed = nodeCodec.change(source, { comment: 'mine', hold_job: 'job' });
    expect(JSON.parse(textOf(changed))).toEqual({ ...raw, comment: 'mine', hold_job: 'job' });
    expect(changed.value).toMatchObject({ comment: 'mine', hold_job: 'job', host_keys: [] });
  });

  it('preserves any JSON object around a change', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 })),
        fc.constantFrom(undefined, ' ', '\n\t'),
        (fields, space) => {
          const raw = { ...fields, state: 'ready' };
          const source = read(nodeCodec, node, JSON.stringify(raw, undefined, space));
          const written: unknown = JSON.parse(textOf(nodeCodec.change(source, { comment: 'changed' })));
          const expected: unknown = JSON.parse(JSON.stringify({ ...raw, comment: 'changed' }));
          const port = 'connection_port' in raw ? { ssh_port: raw.connection_port } : {};
          expect(written).toEqual(Object.assign({}, expected, port));
        },
      ),
      { seed: 1, numRuns: 300 },
    );
  });

  it('keeps a record with spaces between all tokens', () => {
    const text = ' { "state" : "ready" , "slot" : 5 , "attributes" : { "a" : [ 1 , "}" ] } , "extra" : 1.50 } ';
    const changed = nodeCodec.change(read(nodeCodec, node, text), { state: 'used', comment: 'mine' });
    expect(textOf(changed)).toContain('"slot" : 5 , "attributes" : { "a" : [ 1 , "}" ] } , "extra" : 1.50');
    expect(JSON.parse(textOf(changed))).toEqual({ ...JSON.parse(text), state: 'used', comment: 'mine' });
  });

  it('changes a field whose name another program has escaped', () => {
    const source = read(nodeCodec, node, String.raw`{"stat\u0065": "ready", "comment": "a \"state\""}`);
    const changed = nodeCodec.change(source, { state: 'deleting' });
    expect(JSON.parse(textOf(changed))).toEqual({ state: 'deleting', comment: 'a "state"' });
  });

  it('differs from its source in the changed members only', () => {
    fc.assert(
      fc.property(fc.oneof(unusualMembers, usualMembers), fc.boolean(), nodeChange, (members, isUsual, change) => {
        const changed = nodeCodec.change(read(nodeCodec, node, textFrom(members, isUsual)), change);
        const expected = textFrom(changedMembers(members, change), true);
        if (isUsual) expect(textOf(changed)).toBe(expected);
        else expect(withoutSpaces(textOf(changed))).toBe(withoutSpaces(expected));
      }),
      { seed: 3, numRuns: 2000 },
    );
  });

  it('reads like its text, whatever the values before and after', () => {
    const field = fc.oneof(fieldValue, fc.constantFrom(-0, Number.NaN, ['a', 5], { a: undefined }, { cores: 'two' }));
    fc.assert(
      fc.property(nodeFields(fieldValue), nodeFields(field), (fields, { ssh_port: _, ...change }) => {
        const source = read(nodeCodec, node, { ...fields, state: 'ready', state_time: 5 });
        const changed = nodeCodec.change(source, { ...(change as Partial<NodeData>), state: 'used' });
        expect(changed.value).toEqual(read(nodeCodec, node, textOf(changed), 5).value);
      }),
      { seed: 4, numRuns: 1000 },
    );
  });

  it('cannot have a state that no record has', () => {
    const source = read(nodeCodec, node, { state: 'ready' });
    const change = JSON.parse('{"state": "dreaming"}') as Partial<NodeData>;
    expect(() => nodeCodec.change(source, change)).toThrow(
      new TypeError(
        `the record cannot be changed so that its "state" is "dreaming"; expected one of: ${NODE_STATES.join(', ')}`,
      ),
    );
  });

  it('does not write its id as a field', () => {
    const { value } = read(nodeCodec, node, { state: 'ready' });
    expect(JSON.parse(nodeCodec.create(value))).not.toHaveProperty('id');
    expect(
      JSON.parse(textOf(nodeCodec.change({ value, data: bytes('{"state": "ready"}') }, value))),
    ).not.toHaveProperty('id');
  });
});

describe('a node', () => {
  it('always has its port under the old name as well', () => {
    const source = read(nodeCodec, node, { state: 'ready', connection_port: 22, ssh_port: 22 });
    expect(JSON.parse(textOf(nodeCodec.change(source, { connection_port: 19885 })))).toMatchObject({
      connection_port: 19885,
      ssh_port: 19885,
    });
    expect(JSON.parse(nodeCodec.create(source.value))).toMatchObject({ connection_port: 22, ssh_port: 22 });
  });

  it('has no port under either name after its port was removed', () => {
    const source = read(nodeCodec, node, { state: 'ready', connection_port: 22, ssh_port: 22 });
    const text = textOf(nodeCodec.change(source, { connection_port: null }));
    expect(JSON.parse(text)).toEqual({ state: 'ready', connection_port: null, ssh_port: null });
    expect(read(nodeCodec, node, text).value.connection_port).toBeNull();
    const old = nodeCodec.change(read(nodeCodec, node, { state: 'ready', ssh_port: 22 }), { connection_port: null });
    expect(JSON.parse(textOf(old))).toEqual({ state: 'ready', connection_port: null, ssh_port: null });
  });

  it('has no port if another program removed it under the new name only', () => {
    const source = read(nodeCodec, node, { state: 'ready', connection_port: null, ssh_port: 22 });
    expect(source.value.connection_port).toBeNull();
  });

  it('has the port of old data, which has only the old name', () => {
    expect(read(nodeCodec, node, { state: 'ready', ssh_port: 2222 }).value.connection_port).toBe(2222);
  });

  it('can have credentials as its port', () => {
    const connection_port = { name: 'cluster', token: 'secret' };
    expect(read(nodeCodec, node, { state: 'ready', connection_port }).value.connection_port).toEqual(connection_port);
  });

  it('reads the single label of old data as a list, and does not change the text', () => {
    const source = read(nodeCodec, node, { state: 'ready', type: 'small' });
    expect(source.value.type).toEqual(['small']);
    expect(JSON.parse(textOf(nodeCodec.change(source, { state: 'used' })))).toMatchObject({ type: 'small' });
    expect(JSON.parse(textOf(nodeCodec.change(source, { type: ['large'] })))).toMatchObject({ type: ['large'] });
  });

  it.each([
    ['a text', 'i-123', 'i-123'],
    ['an object', { pool: 'a', name: 'b' }, { pool: 'a', name: 'b' }],
    ['a number, read as text', 42, '42'],
    ['nothing', null, null],
  ])('can have as its external id %s', (_, external_id, expected) => {
    expect(read(nodeCodec, node, { state: 'ready', external_id }).value.external_id).toEqual(expected);
  });

  it('can have its hold time in seconds as text', () => {
    expect(read(nodeCodec, node, { state: 'hold', hold_expiration: '3600' }).value.hold_expiration).toBe('3600');
  });

  it('has launch progress only while the field exists', () => {
    const progress = { kind: 'launch', attempt: 'abc', number: 2, started: 5, machine: { state: 'start' } } as const;
    const source = read(nodeCodec, node, { state: 'building' });
    expect(source.value.progress).toBeNull();
    const launching = nodeCodec.change(source, { progress });
    expect(JSON.parse(textOf(launching))).toEqual({ state: 'building', progress });
    expect(launching.value.progress).toEqual(progress);
    expect(JSON.parse(textOf(nodeCodec.change(launching, { progress: null })))).toEqual({ state: 'building' });
    expect(JSON.parse(nodeCodec.create(launching.value))).toHaveProperty('progress', progress);
    expect(JSON.parse(nodeCodec.create(source.value))).not.toHaveProperty('progress');
  });

  it('without a state time has the time of its last change', () => {
    expect(read(nodeCodec, node, { state: 'ready', state_time: 'noon' }, 1234.5).value.state_time).toBe(1234.5);
  });
});

describe('a request', () => {
  it('allows reuse of nodes and has relative priority 0 by default', () => {
    const { value } = read(requestCodec, request, { state: 'requested', node_types: ['small'] });
    expect(value).toMatchObject({ reuse: true, relative_priority: 0, declined_by: [], nodes: [], provider: null });
  });

  it('is unreadable without a list of labels', () => {
    for (const node_types of [undefined, 'small', ['small', 5]]) {
      const decoded = requestCodec.decode(bytes(JSON.stringify({ state: 'requested', node_types })), request, 0);
      expect(decoded).toEqual({ ok: false, reason: expect.stringContaining('"node_types"') });
    }
  });
});

describe('an image build', () => {
  it('has sorted formats, which are one text in the JSON', () => {
    const source = read(buildCodec, { image: 'i', id: 'b' }, { state: 'ready', formats: 'vhd,qcow2' });
    expect(source.value.formats).toEqual(['qcow2', 'vhd']);
    expect(JSON.parse(textOf(buildCodec.change(source, { state: 'deleting' })))).toMatchObject({
      formats: 'vhd,qcow2',
    });
    expect(JSON.parse(textOf(buildCodec.change(source, { formats: ['raw', 'qcow2'] })))).toMatchObject({
      formats: 'qcow2,raw',
    });
  });
});

describe('an image upload', () => {
  it('is read with the identifiers in its path', () => {
    const place = { image: 'i', build: 'b', provider: 'p', id: '0000000001' };
    expect(read(uploadCodec, place, { state: 'ready', external_id: 'x' }).value).toMatchObject({
      ...place,
      external_id: 'x',
      format: null,
    });
  });
});

describe('a znode without a valid record', () => {
  it.each([
    ['is empty', new Uint8Array(), 'empty'],
    ['is not text', Uint8Array.of(0x7b, 0xff, 0xfe), 'UTF-8'],
    ['is not JSON', bytes('{"state": "ready"'), 'not JSON'],
    ['is not an object', bytes('["ready"]'), 'a list; expected a JSON object'],
    ['is null', bytes('null'), 'but null; expected a JSON object'],
    ['has no state', bytes('{}'), '"state" is missing; expected one of: init'],
    ['has an unknown state', bytes('{"state": "dreaming"}'), '"state" is "dreaming"; expected one of: init'],
    ['has a state of the wrong type', bytes('{"state": {}}'), '"state" is {}'],
  ])('is reported when it %s', (_, data, reason) => {
    expect(nodeCodec.decode(data, node, 0)).toEqual({ ok: false, reason: expect.stringContaining(reason) });
  });

  it('is reported without its content, which can contain credentials', () => {
    const decoded = nodeCodec.decode(bytes('{"connection_port": {"token": "secret" "x"}}'), node, 0);
    expect(decoded).toEqual({
      ok: false,
      reason: expect.stringMatching(/not JSON \(at position \d+ of 44 characters\)/),
    });
    expect(JSON.stringify(decoded)).not.toContain('secret');
  });

  it('never throws for any bytes', () => {
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array(), fc.json().map(bytes)), (data) => {
        for (const decoded of [nodeCodec.decode(data, node, 0), requestCodec.decode(data, request, 0)]) {
          expect(typeof decoded.ok).toBe('boolean');
        }
        expect(decodeComponent(data, 'pool')).toBeDefined();
      }),
      { seed: 2, numRuns: 300 },
    );
  });

  it('can be deeply nested', () => {
    const deep = `{"state": "ready", "user_data": ${'['.repeat(5000)}${']'.repeat(5000)}}`;
    const source = read(nodeCodec, node, deep);
    expect(textOf(nodeCodec.change(source, { state: 'used' }))).toContain('['.repeat(5000));
  });
});

describe('a component', () => {
  it('is written with its members in alphabetical order', () => {
    const component = { hostname: 'h', kind: 'launcher', state: 'running', version: '1', model_api: 0 } as const;
    expect(encodeComponent(component)).toBe(
      '{"hostname":"h","kind":"launcher","model_api":0,"state":"running","version":"1"}',
    );
  });

  it('counts as running in an unknown state', () => {
    expect(decodeComponent(bytes('{"hostname": "h", "state": "hibernating"}'), 'builder')).toMatchObject({
      kind: 'builder',
      state: 'running',
    });
  });

  it('of a pool requires the supported labels', () => {
    expect(decodeComponent(bytes('{"id": "a", "provider_name": "p"}'), 'pool')).toContain('supported_labels');
    expect(
      decodeComponent(bytes('{"id": "a", "provider_name": "p", "supported_labels": ["x"]}'), 'pool'),
    ).toMatchObject({ supported_labels: ['x'], priority: 100, paused: false });
  });
});
