/** Trees written by a Python Nodepool are read through the store and written back without loss. */

import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { COMPONENT_KINDS } from '../src/components/component.js';
import { newReview, trustedReview, type ImageReview, type ImageUpload } from '@nodepool/core';
import { decodeComponent, requestCodec, standingOf } from '@nodepool/store';
import type { Decoded } from '../src/codec/codec.js';
import { encodeComponent } from '../src/components/component-codec.js';
import { buildCodec, uploadCodec } from '../src/codec/image.js';
import { nodeCodec } from '../src/codec/node.js';
import { Simulation, bytes, given, ignoring } from './simulation.js';

const FOLDER = join(__dirname, 'compat');

interface RecordedZnode {
  readonly path: string;
  readonly ephemeral: boolean;
  readonly data: string;
}

/** Parses `<path> [E] <data>`; `[E]` marks ephemerals. */
function parseZnode(line: string): RecordedZnode {
  const match = given(/^(\S+) ?(\[E\] )?(.*)$/.exec(line) ?? undefined);
  return { path: given(match[1]), ephemeral: match[2] !== undefined, data: match[3] ?? '' };
}

function linesOf(file: string): string[] {
  return readFileSync(join(FOLDER, file), 'utf8')
    .split('\n')
    .filter((line) => line !== '');
}

let simulation: Simulation;

beforeEach(() => {
  simulation = new Simulation();
});

afterEach(() => simulation.close());

async function create({ path, ephemeral, data }: RecordedZnode): Promise<void> {
  await simulation.other.create(path, bytes(data), { mode: ephemeral ? 'ephemeral' : 'persistent' });
}

const trees = readdirSync(FOLDER)
  .filter((file) => /^\d\d-/.test(file))
  .sort();

it('the recorded trees exist', () => {
  expect(trees).toHaveLength(17);
});

describe.each(trees)('the tree %s', (file) => {
  const znodes = linesOf(file).map(parseZnode);
  const withData = znodes.filter(({ data }) => data !== '');

  it('is complete after the initial read', async () => {
    await simulation.run(Promise.all(znodes.map(create)));
    const store = await simulation.store();
    const known = [
      ...[...store.nodes.all()].map(({ id }) => `/nodepool/nodes/${id}`),
      ...[...store.requests.all()].map(({ id }) => `/nodepool/requests/${id}`),
      ...[...store.components.all()].map(({ path }) => path),
      ...[...store.images.images()].flatMap((image) =>
        store.images.builds(image).map(({ id }) => `/nodepool/images/${image}/builds/${id}`),
      ),
      ...[...store.images.uploads({})].map(
        ({ image, build, provider, id }) =>
          `/nodepool/images/${image}/builds/${build}/providers/${provider}/images/${id}`,
      ),
    ];
    const records = withData.map(({ path }) => path).filter((path) => !path.includes('/elections/'));
    expect(known.sort()).toEqual(records.sort());
    expect([...store.nodes.corrupt(), ...store.requests.corrupt(), ...store.images.corrupt()]).toEqual([]);
    simulation.expectMirrored(store);
  });

  it('loses nothing when its records are written back', () => {
    for (const { path, data } of withData) {
      const written = rewritten(path, data);
      expect({ path, record: written === undefined ? undefined : (JSON.parse(written) as unknown) }).toEqual({
        path,
        record: path.includes('/elections/') ? undefined : (JSON.parse(data) as unknown),
      });
    }
  });

  it('loses nothing when the store writes its nodes', async () => {
    await simulation.run(Promise.all(znodes.map(create)));
    const store = await simulation.store();
    for (const { id, locked } of [...store.nodes.all()]) {
      if (locked) continue;
      const before = simulation.json(`/nodepool/nodes/${id}`);
      const handle = given(await simulation.run(store.nodes.tryLock(id)));
      await simulation.run(handle.update({ comment: 'written' }));
      await simulation.run(handle.release({ user_data: { by: 'us' } }));
      expect(simulation.json(`/nodepool/nodes/${id}`)).toEqual({
        ...Object(before),
        comment: 'written',
        user_data: { by: 'us' },
      });
    }
  });
});

const textOf = ({ data }: { readonly data: Uint8Array }): string => new TextDecoder().decode(data);

/** Reads the record of a path and returns its text after a change to equal values. */
function rewritten(path: string, data: string): string | undefined {
  const [, , kind, name = '', , build = '', , provider = '', , upload] = path.split('/');
  const content = bytes(data);
  switch (kind) {
    case 'nodes': {
      const source = sourceOf(nodeCodec.decode(content, { id: name }, 0));
      return textOf(nodeCodec.change(source, source.value));
    }
    case 'requests': {
      const source = sourceOf(requestCodec.decode(content, { id: name }, 0));
      return textOf(requestCodec.change(source, source.value));
    }
    case 'images': {
      if (upload === undefined) {
        const source = sourceOf(buildCodec.decode(content, { image: name, id: build }, 0));
        return textOf(buildCodec.change(source, source.value));
      }
      const place = { image: name, build, provider, id: upload };
      const source = sourceOf(uploadCodec.decode(content, place, 0));
      return textOf(uploadCodec.change(source, source.value));
    }
    case 'components': {
      const component = decodeComponent(content, given(COMPONENT_KINDS.find((known) => known === name)));
      if (typeof component === 'string') throw new Error(component);
      return encodeComponent(component);
    }
    default:
      return undefined;
  }
}

function sourceOf<T>(decoded: Decoded<T>): { readonly value: T; readonly data: Uint8Array } {
  if (!decoded.ok) throw new Error(decoded.reason);
  return decoded.source;
}

describe('a recorded session', () => {
  it('is mirrored change by change', async () => {
    const store = await simulation.store();
    const changes: string[] = [];
    store.nodes.onChange(({ id, before, after }) => {
      // Notifications are consistent: each change begins where the last one of the same record ended.
      const last = changes.findLast((change) => change.startsWith(id));
      const describeEntry = (entry: typeof before): string =>
        entry === undefined ? 'absent' : `${entry.version} ${entry.node.state} ${entry.locked}`;
      expect(last ?? `${id} absent`).toBe(`${id} ${describeEntry(before)}`);
      changes.push(`${id} ${describeEntry(after)}`);
    });
    let step = 0;
    for (const line of linesOf('trace.txt')) {
      const [, sign, rest] = given(/^\s*[\d.]+ ([-+~]) (.*)$/.exec(line) ?? undefined);
      const znode = parseZnode(given(rest));
      await simulation.run(replay(given(sign), znode));
      // Not after every operation, so that changes also come in bursts.
      step += 1;
      if (step % 7 === 0) simulation.expectMirrored(await mirrored(store));
    }
    simulation.expectMirrored(await mirrored(store));
    expect(changes.length).toBeGreaterThan(100);
    const fresh = await simulation.store();
    expect([...store.nodes.all()]).toEqual([...fresh.nodes.all()]);
    expect([...store.requests.all()]).toEqual([...fresh.requests.all()]);
    expect([...store.images.uploads({})]).toEqual([...fresh.images.uploads({})]);
    expect([...store.images.images()].map((image) => [image, store.images.builds(image)])).toEqual(
      [...fresh.images.images()].map((image) => [image, fresh.images.builds(image)]),
    );
    expect([...store.requests.orphanedLocks()].sort()).toEqual([...fresh.requests.orphanedLocks()].sort());
  });

  async function mirrored<S>(store: S): Promise<S> {
    await simulation.settled();
    return store;
  }

  async function replay(sign: string, znode: RecordedZnode): Promise<void> {
    const { other } = simulation;
    if (sign === '-') {
      // Deletions of the same moment were recorded parents first.
      const below = simulation.paths(`${znode.path}/`).reverse();
      for (const path of [...below, znode.path]) await ignoring('no-node', other.delete(path));
    }
    if (sign === '~') await other.set(znode.path, bytes(znode.data));
    // The roots exist already: the store has created them.
    if (sign === '+' && !simulation.server.dump().has(znode.path)) await create(znode);
  }
});

describe('a fleet with programs of a Python Nodepool, which know no stages', () => {
  const PLACE = { image: 'fake-image', provider: 'fake-provider' };
  const POLICY = { isTested: true, share: 0 };

  /** The choice of a Python launcher: the newest ready upload, whatever else is in its record. */
  const chosenByPython = (): string | undefined => {
    const uploads = [...simulation.server.dump()].flatMap(([path, { data }]) => {
      const [, build] = /builds\/([^/]+)\/providers\/fake-provider\/images\/\d+$/.exec(path) ?? [];
      if (build === undefined || !path.startsWith('/nodepool/images/fake-image/')) return [];
      const record = JSON.parse(Buffer.from(data).toString()) as { state: string; state_time: number };
      return record.state === 'ready' ? [{ build, since: record.state_time }] : [];
    });
    return uploads.sort((a, b) => b.since - a.since)[0]?.build;
  };

  it('agrees about the image until an upload is tested; then only this Nodepool keeps the current one', async () => {
    await simulation.run(Promise.all(linesOf('14-image-second-upload-ready.txt').map(parseZnode).map(create)));
    const store = await simulation.store();
    const chosen = (): string | undefined =>
      store.images.choose(PLACE.image, PLACE.provider, POLICY, undefined)?.upload.build;
    const newest = given([...store.images.uploads(PLACE)].at(-1));
    // Both use the newest upload, also if tests are demanded: it was there before them.
    expect(chosen()).toBe(newest.build);
    expect(chosenByPython()).toBe(newest.build);
    const previous = given([...store.images.uploads(PLACE)][0]);
    const write = async (upload: ImageUpload, review: ImageReview): Promise<void> => {
      const handle = given(await simulation.run(store.images.tryLockUpload(upload, { change: { review } })));
      await simulation.run(handle.release());
    };
    await write(previous, trustedReview(previous.state_time));
    await write(newest, newReview(newest.state_time, 'builder', 'uploaded'));
    await simulation.run(store.images.syncCache());
    expect(chosen()).toBe(previous.build);
    // It sees a ready upload with a field that it ignores, so a Python launcher uses it untested.
    expect(chosenByPython()).toBe(newest.build);
  });

  it('tests an upload whose review a Python builder has dropped', async () => {
    await simulation.run(Promise.all(linesOf('14-image-second-upload-ready.txt').map(parseZnode).map(create)));
    const store = await simulation.store();
    const [previous, newest] = [...store.images.uploads(PLACE)];
    const handle = given(
      await simulation.run(
        store.images.tryLockUpload(given(previous), {
          change: { review: trustedReview(given(previous).state_time) },
        }),
      ),
    );
    await simulation.run(handle.release());
    await simulation.run(store.images.syncCache());
    expect(store.images.choose(PLACE.image, PLACE.provider, POLICY, undefined)?.upload.build).toBe(
      given(previous).build,
    );
    expect(standingOf(store.images.uploads(PLACE), true).candidate?.build).toBe(given(newest).build);
  });
});
