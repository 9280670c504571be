/**
 * Reviews of images in worlds with random images, jobs and deaths of launchers. After every write the rules hold: no
 * request gets an image before its test or after its rejection, and the current image is never lost.
 * `NODEPOOL_SIM_SEEDS` sets the number of seeds.
 */

import { expect, it } from '@jest/globals';
import { InstanceFailedError, isJsonObject, type JsonObject, type NodeRequestHandler } from '@nodepool/core';
import { seededRandom } from '@nodepool/core/testing';
import { faultyDriver } from './support/faulty-driver.js';
import { writeRecord } from './support/records.js';
import { World, pool, provider, type RunningLauncher } from './support/world.js';

const SEEDS = Number(process.env['NODEPOOL_SIM_SEEDS'] ?? 2);
const BUILDS = '/nodepool/images/debian/builds';
const MINUTE = 60_000;
/** Duration of a run, and of its end without further images and deaths. */
const BUSY_MS = 90 * MINUTE;
const CALM_MS = 60 * MINUTE;
/** Time (ms) in which a rejection reaches every launcher. */
const NEWS_MS = 2000;

type Kind = 'good' | 'no-login' | 'bad-jobs';
const KINDS: readonly Kind[] = ['good', 'good', 'no-login', 'bad-jobs'];

const section = provider(
  'demo',
  [pool('main', [], { labels: [{ name: 'small', diskimage: 'debian', size: 'small' }] })],
  {
    diskimages: [{ name: 'debian', 'launch-test': true, canary: { share: '25%', nodes: 15 } }],
  },
);

const pathOf = (build: string): string => `${BUILDS}/${build}/providers/demo/images/0000000001`;
const buildOf = (path: string): string => path.slice(BUILDS.length + 1).split('/')[0] ?? '';

class ReviewWorld {
  readonly world: World;
  readonly kinds = new Map<string, Kind>();
  readonly violations: string[] = [];
  private readonly random;
  private readonly rejectedAt = new Map<string, number>();
  private readonly launchers: (RunningLauncher | undefined)[] = [];
  private hadCurrent = false;
  private served = 0;

  constructor(seed: number) {
    this.random = seededRandom(seed);
    this.world = new World(seed, (random) => Math.floor(random.next() * 5));
    this.world.cloud.configure({ bootTimeMs: [5000, 20_000] });
    this.world.server.onCommit((changes) => {
      for (const { path } of changes) this.changed(path);
    });
  }

  /** Uses images, kills launchers and adds images. Resolves with the number of served requests. */
  async run(): Promise<number> {
    await this.addImage('good');
    for (const name of ['launcher1', 'launcher2']) this.launchers.push(await this.launcher(name));
    const end = this.world.clock.monotonic() + BUSY_MS;
    for (let next = 0; this.world.clock.monotonic() < end;) {
      if (this.world.clock.monotonic() >= next) {
        next = this.world.clock.monotonic() + 10 * MINUTE;
        await this.addImage(KINDS[Math.floor(this.random.next() * KINDS.length)] ?? 'good');
        if (this.random.next() < 0.5) await this.replaceLauncher();
      }
      await this.useNode();
    }
    await this.addImage('good');
    const last = [...this.kinds.keys()].at(-1) ?? '';
    const limit = this.world.clock.monotonic() + CALM_MS;
    while (this.stageOf(pathOf(last)) !== 'promoted' && this.world.clock.monotonic() < limit) await this.useNode();
    if (this.stageOf(pathOf(last)) !== 'promoted')
      this.violations.push(`the last image is ${String(this.stageOf(pathOf(last)))}`);
    return this.served;
  }

  private async addImage(kind: Kind): Promise<void> {
    const build = `b${this.kinds.size}`;
    this.kinds.set(build, kind);
    const time = this.world.clock.now() / 1000;
    const common = { state_time: time, username: 'zuul', python_path: 'auto', shell_type: null };
    await writeRecord(this.world, `${BUILDS}/${build}`, { ...common, state: 'ready', formats: 'raw', builder: 'b' });
    const review = { stage: 'uploaded', since: time, by: 'builder', reason: 'uploaded', history: [] };
    await writeRecord(this.world, pathOf(build), {
      ...{ ...common, state: 'ready', external_id: `image-${build}`, external_name: build, format: 'raw', review },
    });
  }

  private launcher(name: string): Promise<RunningLauncher> {
    const driver = faultyDriver(this.world.cloud, (original) => ({
      getRequestHandler: (...args) => {
        const handler = original.getRequestHandler(...args);
        const launch: NodeRequestHandler['launch'] = async (node) => {
          const instance = await handler.launch(node);
          const { imageExternalId: id } = node;
          const build = typeof id === 'string' ? id.slice('image-'.length) : '';
          if (this.kinds.get(build) === 'no-login') throw new InstanceFailedError('no sshd');
          return instance;
        };
        return new Proxy(handler, {
          get: (target, key): unknown => (key === 'launch' ? launch : Reflect.get(target, key, target)),
        });
      },
    }));
    return this.world.launcher([section], name, driver);
  }

  private async replaceLauncher(): Promise<void> {
    const index = Math.floor(this.random.next() * 2);
    const victim = this.launchers[index];
    if (victim !== undefined && this.random.next() < 0.5) {
      this.world.server.expireSession(victim.zk);
      return;
    }
    await victim?.stop();
    this.launchers[index] = await this.launcher(`launcher${index + 1}`);
  }

  private async useNode(): Promise<void> {
    const { world } = this;
    const id = await world.submit(['small'], { reuse: this.random.next() < 0.3 });
    const [node = ''] = await world.fulfilled(id);
    const image = world.nodes().get(node)?.['image_id'];
    const { lease } = await world.during(world.requestor.take(id));
    await world.during(lease.use());
    const isBad = typeof image === 'string' && this.kinds.get(buildOf(image)) === 'bad-jobs';
    const failed = this.random.next() < (isBad ? 0.8 : 0.05);
    await world.during(lease.return({ result: failed ? 'failure' : 'success' }));
    this.served += 1;
    await world.clock.advance(Math.floor(this.random.next() * 10_000));
  }

  private record(path: string): JsonObject | undefined {
    const data = this.world.server.dump().get(path)?.data;
    if (data === undefined || data.length === 0) return undefined;
    const value: unknown = JSON.parse(Buffer.from(data).toString());
    return isJsonObject(value) ? value : undefined;
  }

  private stageOf(upload: string): unknown {
    const review = this.record(upload)?.['review'];
    return isJsonObject(review) ? review['stage'] : undefined;
  }

  private changed(path: string): void {
    if (path.startsWith('/nodepool/requests/')) this.requestChanged(path);
    if (!path.startsWith(BUILDS) || !/\/images\/\d+$/.test(path)) return;
    if (this.stageOf(path) === 'rejected') {
      this.rejectedAt.set(path, this.rejectedAt.get(path) ?? this.world.clock.monotonic());
    }
    const hasCurrent = [...this.kinds.keys()].some((build) => this.stageOf(pathOf(build)) === 'promoted');
    if (this.hadCurrent && !hasCurrent) this.violations.push('the current image is lost');
    this.hadCurrent ||= hasCurrent;
  }

  private requestChanged(path: string): void {
    const request = this.record(path);
    if (request?.['state'] !== 'fulfilled' || request['requestor'] === 'NodePool:launch-test') return;
    for (const id of request['nodes'] as readonly string[]) {
      const image = this.record(`/nodepool/nodes/${id}`)?.['image_id'];
      if (typeof image !== 'string') continue;
      const stage = this.stageOf(image);
      const isNews = this.world.clock.monotonic() - (this.rejectedAt.get(image) ?? 0) < NEWS_MS;
      if (stage === 'promoted' || stage === 'canary' || (stage === 'rejected' && isNews)) continue;
      this.violations.push(`node ${id} of request ${path} has image ${image}, which is ${String(stage)}`);
    }
  }

  /** Returns the builds that were promoted although no node of them can be used. */
  wronglyPromoted(): string[] {
    return [...this.kinds].flatMap(([build, kind]) =>
      kind === 'no-login' && this.stageOf(pathOf(build)) === 'promoted' ? [build] : [],
    );
  }
}

it(`launchers keep the rules of reviews in ${SEEDS} worlds`, async () => {
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const run = new ReviewWorld(seed);
    const served = await run.run();
    expect({ seed, violations: run.violations, wrong: run.wronglyPromoted(), isBusy: served > 100 }).toEqual({
      ...{ seed, violations: [], wrong: [], isBusy: true },
    });
    await run.world.end();
  }
}, 86_400_000);
