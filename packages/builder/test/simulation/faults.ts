/** The faults of a run, drawn at random one after another, and their end. */

import type { RandomSource } from '@nodepool/core';
import { NO_FAULTS, type CloudFaults } from '../support/image-cloud.js';
import type { Ending } from '../support/scripted-dib.js';
import type { Machine, Site } from '../support/world.js';
import { BUSY_SITE, CALM_SITE, type BuilderProcess, type SimulatedBuilders } from './world.js';

const PAUSE_MS = { least: 1000, greatest: 120_000 } as const;
const ENDINGS: readonly Ending[] = ['fails', 'hangs', 'no-file', 'half', 'full'];
const FAULTS: readonly (keyof CloudFaults)[] = [
  'uploadFails',
  'answerLost',
  'deleteFails',
  'listFails',
  'hangs',
  'listLacks',
];

export class FaultInjector {
  private over = false;
  private readonly faults: readonly (readonly [weight: number, inject: () => void])[];

  constructor(
    private readonly world: SimulatedBuilders,
    private readonly random: RandomSource,
  ) {
    this.faults = [
      [5, () => this.kill()],
      [3, () => this.pause()],
      [4, () => this.onVictim('its session expires', ({ zk }) => world.server.expireSession(zk))],
      [3, () => this.onVictim('it is disconnected', ({ zk }) => world.server.disconnect(zk))],
      [4, () => this.partition()],
      [6, () => this.loseWrite()],
      [2, () => this.outage()],
      [5, () => this.fillDisk()],
      [4, () => this.spoilBuilds()],
      [5, () => this.spoilCloud()],
      [3, () => this.reconfigure()],
      [3, () => this.deleteImageInCloud()],
      [3, () => this.operatorDeletesUpload()],
      [2, () => this.operatorDeletesBuild()],
      [4, () => this.operatorAsksForBuild()],
    ];
  }

  /** Starts injecting faults. */
  begin(): void {
    this.later(PAUSE_MS.least, PAUSE_MS.greatest, () => {
      this.draw()();
      this.begin();
    });
  }

  /** Ends all faults and starts a builder on every machine. */
  end(): void {
    const { world } = this;
    this.over = true;
    world.server.start();
    world.cloud.faults = NO_FAULTS;
    world.ending = () => 'works';
    for (const machine of world.machines) {
      machine.disk.full = false;
      const builder = world.builders.get(machine.name);
      if (builder === undefined || builder.process.dead) world.start(machine, CALM_SITE);
      else {
        builder.resume();
        builder.apply(CALM_SITE);
      }
    }
    world.sites.clear();
    world.checker.step('all faults have ended');
  }

  private draw(): () => void {
    const total = this.faults.reduce((sum, [weight]) => sum + weight, 0);
    let left = this.random.next() * total;
    for (const [weight, inject] of this.faults) {
      left -= weight;
      if (left < 0) return inject;
    }
    return () => undefined;
  }

  private between(least: number, greatest: number): number {
    return Math.floor(least + this.random.next() * (greatest - least));
  }

  private later(least: number, greatest: number, what: () => void): void {
    this.world.clock.schedule(this.between(least, greatest), () => {
      if (!this.over) what();
    });
  }

  private onVictim(what: string, inject: (builder: BuilderProcess) => void): void {
    const running = [...this.world.builders.values()].filter(({ process }) => !process.dead && !process.paused);
    const victim = running[Math.floor(this.random.next() * running.length)];
    if (victim === undefined) return;
    this.world.checker.step(`${victim.machine.name}: ${what}`);
    inject(victim);
  }

  private kill(): void {
    this.onVictim('it is killed', (builder) => {
      builder.kill();
      this.later(0, 180_000, () => this.revive(builder.machine));
    });
  }

  private revive(machine: Machine): void {
    this.world.start(machine, this.world.sites.get(machine.name) ?? BUSY_SITE);
  }

  private pause(): void {
    this.onVictim('it is paused', (builder) => {
      builder.pause();
      this.later(100, 120_000, () => builder.resume());
    });
  }

  private partition(): void {
    const how = this.random.next() < 0.5 ? 'cut' : 'silent';
    this.onVictim(`it cannot reach ZooKeeper (${how})`, ({ zk, process }) => {
      this.world.server.partition(zk, how);
      this.later(100, 90_000, () => {
        if (!process.dead && !process.paused) this.world.server.heal(zk);
      });
    });
  }

  private loseWrite(): void {
    const when = this.random.next() < 0.3 ? 'before-applied' : 'after-applied';
    this.onVictim(`its next write gets lost (${when})`, ({ zk }) => this.world.server.loseNextWrite(zk, when));
  }

  private outage(): void {
    this.world.checker.step('ZooKeeper goes down');
    this.world.server.stop();
    this.world.clock.schedule(this.between(0, 90_000), () => this.world.server.start());
  }

  private fillDisk(): void {
    const machine = this.world.machines[this.between(0, this.world.machines.length)];
    if (machine === undefined) return;
    this.world.checker.step(`${machine.name}: its disk is full`);
    machine.disk.full = true;
    this.later(1000, 1_800_000, () => (machine.disk.full = false));
  }

  private spoilBuilds(): void {
    const ending = ENDINGS[this.between(0, ENDINGS.length)] ?? 'fails';
    this.world.checker.step(`builds end as in "${ending}"`);
    this.world.ending = () => (this.random.next() < 0.5 ? ending : 'works');
    this.later(1000, 900_000, () => (this.world.ending = () => 'works'));
  }

  private spoilCloud(): void {
    const fault = FAULTS[this.between(0, FAULTS.length)] ?? 'uploadFails';
    this.world.checker.step(`the clouds have ${fault}`);
    this.world.cloud.faults = { ...NO_FAULTS, [fault]: 0.2 + 0.6 * this.random.next() };
    this.later(1000, 900_000, () => (this.world.cloud.faults = NO_FAULTS));
  }

  private reconfigure(): void {
    const without = ['one', 'two'].find(() => this.random.next() < 0.3);
    const listed = this.random.next() < 0.3 ? ['debian'] : ['debian', 'fedora'];
    const providers = Object.entries(BUSY_SITE.providers)
      .filter(([name]) => name !== without)
      .map(([name, provider]) => [
        name,
        { ...provider, images: provider.images.filter((image) => listed.includes(image)) },
      ]);
    const site: Site = { ...BUSY_SITE, providers: Object.fromEntries(providers) as Site['providers'] };
    this.onVictim(`it is configured without ${without ?? 'nothing'}, for ${listed.join(', ')}`, (builder) => {
      this.world.configure(builder, site);
      this.later(1000, 900_000, () => {
        if (!builder.process.dead) this.world.configure(builder, BUSY_SITE);
      });
    });
  }

  /**
   * Deletes an image in service that a builder has seen. Unseen ones are detected by launchers, which the simulation
   * does not have.
   */
  private deleteImageInCloud(): void {
    const { operator, checker, cloud } = this.world;
    const seen = [...operator.images.uploads({})].filter(({ state, listed }) => state === 'ready' && listed === true);
    const upload = seen[this.between(0, seen.length)];
    if (typeof upload?.external_id !== 'string') return;
    checker.step(`${upload.external_id} of ${upload.image} disappears from ${upload.provider}`);
    cloud.images.delete(upload.external_id);
  }

  private operatorDeletesUpload(): void {
    const { operator, checker } = this.world;
    const uploads = [...operator.images.uploads({})].filter(({ state }) => state === 'ready');
    const upload = uploads[this.between(0, uploads.length)];
    if (upload === undefined) return;
    const { image, build, provider, id } = upload;
    checker.deletedByOperator.add(`/nodepool/images/${image}/builds/${build}/providers/${provider}/images/${id}`);
    checker.step(`the operator deletes upload ${id} of ${image} to ${provider}`);
    this.operate(async () =>
      (await operator.images.tryLockUpload(upload, { change: { state: 'deleting' } }))?.release(),
    );
  }

  private operatorDeletesBuild(): void {
    const { operator, checker } = this.world;
    const builds = [...operator.images.images()].flatMap((image) => operator.images.builds(image));
    const ready = builds.filter(({ state }) => state === 'ready');
    const build = ready[this.between(0, ready.length)];
    if (build === undefined) return;
    checker.deletedByOperator.add(build.id);
    checker.step(`the operator deletes build ${build.id} of ${build.image}`);
    this.operate(async () => (await operator.images.tryLockBuild(build, { change: { state: 'deleting' } }))?.release());
  }

  private operatorAsksForBuild(): void {
    const image = this.random.next() < 0.5 ? 'debian' : 'fedora';
    this.world.checker.step(`the operator asks for a build of ${image}`);
    this.operate(() => this.world.operator.images.requestBuild(image));
  }

  private operate(work: () => Promise<unknown>): void {
    work().catch((error: unknown) => this.world.checker.step(`the operator fails: ${String(error)}`));
  }
}
