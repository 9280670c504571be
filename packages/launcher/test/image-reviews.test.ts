/** Tests of the stages of an uploaded image: launch test, trial, promotion, rejection, and what requests get. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { InstanceFailedError, type JsonObject, type NodeRequestHandler } from '@nodepool/core';
import { faultyDriver } from './support/faulty-driver.js';
import { writeRecord } from './support/records.js';
import { REQUESTS, World, pool, provider } from './support/world.js';

const BUILDS = '/nodepool/images/debian/builds';

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

const LABELS = [{ name: 'small', diskimage: 'debian', size: 'small' }];
const section = (tests: JsonObject): JsonObject =>
  provider('demo', [pool('main', [], { labels: LABELS })], {
    diskimages: [{ name: 'debian', ...tests }],
  });
const uploads = (build: string): string => `${BUILDS}/${build}/providers/demo/images`;
const pathOf = (build: string): string => `${uploads(build)}/0000000001`;

/** Writes a build and its upload. `review` is the stage with which a builder writes it. */
async function upload(build: string, time: number, review: JsonObject = {}): Promise<void> {
  await writeRecord(world, `${BUILDS}/${build}`, { state: 'ready', state_time: time, formats: 'raw', builder: 'b' });
  await writeRecord(world, pathOf(build), {
    ...{ state: 'ready', state_time: time, external_id: `image-${build}`, external_name: 'debian', format: 'raw' },
    ...{ username: 'zuul', python_path: 'auto', shell_type: null },
    ...review,
  });
}

const NEW = { review: { stage: 'uploaded', since: 20, by: 'builder', reason: 'uploaded', history: [] } };

const reviewOf = (build: string): JsonObject | undefined =>
  world.records(uploads(build)).get('0000000001')?.['review'] as JsonObject | undefined;
const stageOf = (build: string): unknown => reviewOf(build)?.['stage'];

async function imageOfNew(): Promise<unknown> {
  const [node = ''] = await world.fulfilled(await world.submit(['small'], { reuse: false }));
  return world.nodes().get(node)?.['image_id'];
}

/** A driver whose launches from one image fail after the instance exists. */
function failingOn(image: string, isFailing: () => boolean = () => true): ReturnType<typeof faultyDriver> {
  return faultyDriver(world.cloud, (original) => ({
    getRequestHandler: (...args) => {
      const handler = original.getRequestHandler(...args);
      const launch: NodeRequestHandler['launch'] = async (node) => {
        const instance = await handler.launch(node);
        if (node.imageExternalId === image && isFailing()) throw new InstanceFailedError('no sshd');
        return instance;
      };
      return new Proxy(handler, {
        get: (target, name): unknown => (name === 'launch' ? launch : Reflect.get(target, name, target)),
      });
    },
  }));
}

describe('without tests in the configuration', () => {
  it('the newest upload is used, no review is written, and no launcher runs for election', async () => {
    await upload('a', 10);
    await upload('b', 20);
    await world.launcher([section({})]);
    expect(await imageOfNew()).toBe(pathOf('b'));
    await world.clock.advance(600_000);
    expect([reviewOf('a'), reviewOf('b')]).toEqual([undefined, undefined]);
    expect([...world.server.dump().keys()].filter((path) => path.includes('image-review'))).toEqual([]);
  });
});

describe('a launch test', () => {
  it('promotes an upload once a node launched from exactly that upload was ready; requests use the old one before', async () => {
    await upload('a', 10);
    await world.launcher([section({ 'launch-test': true })]);
    await world.until('the old upload is adopted', () => stageOf('a') === 'promoted');
    world.cloud.configure({ bootTimeMs: [30_000, 30_000] });
    await upload('b', 20, NEW);
    expect(await imageOfNew()).toBe(pathOf('a'));
    await world.until('the new upload is promoted', () => stageOf('b') === 'promoted');
    expect(await imageOfNew()).toBe(pathOf('b'));
    const history = reviewOf('b')?.['history'] as readonly JsonObject[];
    expect(history.map(({ stage }) => stage)).toEqual(['launch-tested', 'promoted']);
    await world.until('the node of the test is deleted', () =>
      [...world.nodes().values()].every((node) => node['requestor'] !== 'NodePool:launch-test'),
    );
  });

  it('rejects an upload whose nodes fail twice; requests use the old one all the time', async () => {
    await upload('a', 10);
    await world.launcher([section({ 'launch-test': true })], 'launcher1', failingOn('image-b'));
    await world.until('the old upload is adopted', () => stageOf('a') === 'promoted');
    await upload('b', 20, NEW);
    await world.until('the new upload is rejected', () => stageOf('b') === 'rejected');
    expect(reviewOf('b')?.['reason']).toMatch(/launch test: no node could be launched from it: .*no sshd/);
    expect(await imageOfNew()).toBe(pathOf('a'));
  });

  it('lets requests wait if there is no other upload, and serves them after the test', async () => {
    await world.launcher([section({ 'launch-test': true })]);
    await upload('b', 20, NEW);
    expect(await imageOfNew()).toBe(pathOf('b'));
    expect(stageOf('b')).toBe('promoted');
  });

  it('tests an upload of a builder without reviews if it is newer than the tests', async () => {
    await upload('a', 10);
    await world.launcher([section({ 'launch-test': true })], 'launcher1', failingOn('image-b'));
    await world.until('the old upload is adopted', () => stageOf('a') === 'promoted');
    await upload('b', 20);
    expect(await imageOfNew()).toBe(pathOf('a'));
    await world.until('the new upload is rejected', () => stageOf('b') === 'rejected');
  });

  it('is rejected only by a second failure', async () => {
    let launches = 0;
    await upload('a', 10);
    const driver = failingOn('image-b', () => (launches += 1) <= 3);
    await world.launcher([section({ 'launch-test': true })], 'launcher1', driver);
    await world.until('the old upload is adopted', () => stageOf('a') === 'promoted');
    await upload('b', 20, NEW);
    await world.until('the new upload is promoted', () => stageOf('b') === 'promoted');
    expect(launches).toBe(4);
  });

  it('ends once an operator has decided, and withdraws its request', async () => {
    await upload('a', 10);
    const full = {
      ...section({ 'launch-test': true }),
      pools: [pool('main', [], { 'max-servers': 1, labels: LABELS })],
    };
    await world.launcher([full]);
    await world.until('the old upload is adopted', () => stageOf('a') === 'promoted');
    await world.served(['small']);
    const tests = (): unknown[] =>
      [...world.records(REQUESTS).values()].filter(({ requestor }) => requestor === 'NodePool:launch-test');
    await upload('b', 20, NEW);
    await world.until('the test waits for the limit', () => tests().length === 1);
    await upload('b', 20, { review: { ...NEW.review, stage: 'promoted', promoted: 30 } });
    await world.until('its request is withdrawn', () => tests().length === 0);
    expect(stageOf('b')).toBe('promoted');
  });

  it('continues in another launcher if the tested one is stopped, and leaves nothing', async () => {
    await upload('a', 10);
    const first = await world.launcher([section({ 'launch-test': true })]);
    await world.until('the old upload is adopted', () => stageOf('a') === 'promoted');
    await upload('b', 20, NEW);
    await world.until('the test has begun', () => world.nodes().size > 0);
    await first.stop();
    await world.launcher([section({ 'launch-test': true })], 'launcher2');
    await world.until('the new upload is promoted', () => stageOf('b') === 'promoted');
    await world.until('the nodes of the tests are deleted', () => world.nodes().size === 0);
  });
});

describe('a trial', () => {
  const canary = { canary: { share: '20%', nodes: 12 } };

  async function useNode(result?: 'success' | 'failure'): Promise<unknown> {
    const id = await world.submit(['small'], { reuse: false });
    const [node = ''] = await world.fulfilled(id);
    const image = world.nodes().get(node)?.['image_id'];
    const { lease } = await world.during(world.requestor.take(id));
    await world.during(lease.use());
    await world.during(lease.return(result === undefined ? {} : { result }));
    return image;
  }

  async function begin(more: Parameters<World['launcher']>[2] = {}): Promise<void> {
    await upload('a', 10);
    await world.launcher([section(canary)], 'launcher1', more);
    await world.until('the old upload is adopted', () => stageOf('a') === 'promoted');
    await upload('b', 20, NEW);
    await world.until('the trial has begun', () => stageOf('b') === 'canary');
  }

  it('uses the candidate for a share of the launches, and promotes it if it is no worse', async () => {
    await begin();
    const used = new Set<unknown>();
    for (let count = 0; count < 120 && stageOf('b') === 'canary'; count += 1) {
      used.add(await useNode('success'));
      await world.clock.advance(5000);
    }
    expect(used).toEqual(new Set([pathOf('a'), pathOf('b')]));
    expect(stageOf('b')).toBe('promoted');
    expect(reviewOf('b')?.['reason']).toMatch(/^it is no worse .*0 of 12 jobs failed/);
  });

  it('rejects a candidate whose jobs fail; its free nodes are deleted and serve no request', async () => {
    await begin();
    for (let count = 0; count < 120 && stageOf('b') === 'canary'; count += 1) {
      const id = await world.submit(['small'], { reuse: false });
      const [node = ''] = await world.fulfilled(id);
      const isCandidate = world.nodes().get(node)?.['image_id'] === pathOf('b');
      const { lease } = await world.during(world.requestor.take(id));
      await world.during(lease.use());
      await world.during(lease.return({ result: isCandidate ? 'failure' : 'success' }));
      await world.clock.advance(5000);
    }
    expect(stageOf('b')).toBe('rejected');
    expect(reviewOf('b')?.['reason']).toMatch(/^it is worse .*jobs failed/);
    for (let count = 0; count < 10; count += 1) expect(await useNode()).toBe(pathOf('a'));
  });

  it('launches a request whose launch failed on the candidate from the current upload, at the cost of no attempt', async () => {
    const driver = failingOn('image-b');
    await upload('a', 10);
    await world.launcher([{ ...section(canary), 'launch-retries': 1 }], 'launcher1', driver);
    await world.until('the old upload is adopted', () => stageOf('a') === 'promoted');
    await upload('b', 20, NEW);
    await world.until('the trial has begun', () => stageOf('b') === 'canary');
    for (let count = 0; count < 120 && stageOf('b') === 'canary'; count += 1) {
      expect(await useNode()).toBe(pathOf('a'));
      await world.clock.advance(5000);
    }
    expect(stageOf('b')).toBe('rejected');
  });
});

describe('a launch in progress', () => {
  it('starts again from the current upload if its upload is rejected meanwhile', async () => {
    await upload('a', 10);
    await world.launcher([{ ...section({}), 'launch-retries': 1 }]);
    await upload('b', 20);
    world.cloud.configure({ bootTimeMs: [30_000, 30_000] });
    const id = await world.submit(['small'], { reuse: false });
    await world.until('the launch has begun', () =>
      [...world.nodes().values()].some((node) => node['image_id'] === pathOf('b') && node['external_id'] !== null),
    );
    await upload('b', 20, { review: { stage: 'rejected', since: 30, by: 'ada', reason: 'broken', history: [] } });
    const [node = ''] = await world.fulfilled(id);
    expect(world.nodes().get(node)?.['image_id']).toBe(pathOf('a'));
  });
});

describe('a revoked upload', () => {
  it('loses its free ready nodes, and requests get the previous upload', async () => {
    await upload('a', 10);
    await upload('b', 20);
    const labels = new Map([['small', { name: 'small', minReady: 1, maxReadyAgeMs: Infinity, maxWaitMs: Infinity }]]);
    await world.launcher([section({})], 'launcher1', { labels });
    const ready = (): JsonObject[] => [...world.nodes().values()].filter(({ state }) => state === 'ready');
    await world.until('a node is ready', () => ready().length === 1);
    expect(ready()[0]?.['image_id']).toBe(pathOf('b'));
    await upload('b', 20, { review: { stage: 'revoked', since: 30, by: 'ada', reason: 'leaked key', history: [] } });
    await world.until('a node of the previous upload is ready', () => ready()[0]?.['image_id'] === pathOf('a'));
    expect(await imageOfNew()).toBe(pathOf('a'));
  });
});
