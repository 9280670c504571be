/** What goes wrong in a run: one thing after another, drawn by chance; and how all of it ends. */

import type { RandomSource } from '@nodepool/core';
import type { CloudSettings, Fault } from '@nodepool/driver-example';
import type { LauncherProcess } from './launcher-process.js';
import { WHOLE_SITE, type SiteConfig } from './site.js';
import { CALM_CLOUD, type World } from './world.js';

type Trouble = (random: RandomSource) => void;

const CLOUD_FAULTS: readonly Fault[] = [
  'create-errors',
  'lost-answers',
  'failed-instances',
  'stuck-instances',
  'delete-errors',
  'list-errors',
  'capacity-errors',
  'auth-errors',
];

/** Between two troubles, milliseconds. */
const PAUSE_MS = { least: 200, greatest: 15_000 } as const;

export class Troublemaker {
  private over = false;
  private started = 0;
  private readonly troubles: readonly (readonly [weight: number, trouble: Trouble])[];

  constructor(
    private readonly world: World,
    private readonly random: RandomSource,
  ) {
    this.troubles = [
      [4, (chance) => this.kill(chance)],
      [2, (chance) => this.stop(chance)],
      [3, (chance) => this.pause(chance)],
      [3, (chance) => this.expire(chance)],
      [4, (chance) => this.partition(chance)],
      [2, (chance) => this.disconnect(chance)],
      [5, (chance) => this.loseWrite(chance)],
      [2, (chance) => this.lag(chance)],
      [2, (chance) => this.outage(chance)],
      [3, (chance) => this.cutCloud(chance)],
      [6, (chance) => this.spoilCloud(chance)],
      [2, (chance) => this.destroyInstance(chance)],
      [3, (chance) => this.reconfigure(chance)],
      [2, (chance) => this.addLauncher(chance)],
    ];
  }

  /** Makes trouble from now on. */
  begin(): void {
    this.world.clock.schedule(between(this.random, PAUSE_MS.least, PAUSE_MS.greatest), () => {
      if (this.over) return;
      this.draw()(this.random);
      this.begin();
    });
  }

  /** Everything works from now on, and there are launchers for the whole site. */
  end(): void {
    const { world } = this;
    this.over = true;
    world.server.start();
    world.cloud.configure(CALM_CLOUD);
    world.scanFailures = 0;
    for (const launcher of world.launchers) {
      if (launcher.process.dead) continue;
      launcher.link.state = 'open';
      launcher.resume();
      world.server.setLag(launcher.zooKeeper, 0);
      if (launcher.alive) this.configure(launcher, WHOLE_SITE);
    }
    if (!world.launchers.some(({ alive }) => alive)) this.start();
    world.checker.step('all trouble is over');
  }

  private draw(): Trouble {
    const total = this.troubles.reduce((sum, [weight]) => sum + weight, 0);
    let left = this.random.next() * total;
    for (const [weight, trouble] of this.troubles) {
      left -= weight;
      if (left < 0) return trouble;
    }
    return () => undefined;
  }

  private victim(random: RandomSource): LauncherProcess | undefined {
    const running = this.world.launchers.filter(({ alive, process }) => alive && !process.paused);
    return running[Math.floor(random.next() * running.length)];
  }

  private later(random: RandomSource, least: number, greatest: number, what: () => void): void {
    this.world.clock.schedule(between(random, least, greatest), () => {
      if (!this.over) what();
    });
  }

  private start(site: SiteConfig = WHOLE_SITE): void {
    this.started += 1;
    this.world.startLauncher(`launcher-x${this.started}`, site);
  }

  private kill(random: RandomSource): void {
    const launcher = this.victim(random);
    if (launcher === undefined) return;
    this.world.checker.step(`${launcher.name} is killed`);
    launcher.kill();
    this.later(random, 0, 30_000, () => this.start(launcher.site));
  }

  private stop(random: RandomSource): void {
    const launcher = this.victim(random);
    if (launcher === undefined) return;
    const { checker } = this.world;
    checker.step(`${launcher.name} is stopped`);
    launcher.stop().catch((error: unknown) => checker.report('X', `${launcher.name} does not stop: ${String(error)}`));
    this.later(random, 0, 30_000, () => this.start(launcher.site));
  }

  private pause(random: RandomSource): void {
    const launcher = this.victim(random);
    if (launcher === undefined) return;
    this.world.checker.step(`${launcher.name} is paused`);
    launcher.pause();
    this.later(random, 100, 40_000, () => {
      this.world.checker.step(`${launcher.name} goes on`);
      launcher.resume();
    });
  }

  private expire(random: RandomSource): void {
    const launcher = this.victim(random);
    if (launcher === undefined) return;
    this.world.checker.step(`the session of ${launcher.name} expires`);
    this.world.server.expireSession(launcher.zooKeeper);
  }

  private partition(random: RandomSource): void {
    const launcher = this.victim(random);
    if (launcher === undefined) return;
    const how = random.next() < 0.5 ? 'cut' : 'silent';
    this.world.checker.step(`${launcher.name} cannot reach ZooKeeper (${how})`);
    this.world.server.partition(launcher.zooKeeper, how);
    this.later(random, 100, 25_000, () => {
      if (!launcher.process.dead && !launcher.process.paused) this.world.server.heal(launcher.zooKeeper);
    });
  }

  private disconnect(random: RandomSource): void {
    const launcher = this.victim(random);
    if (launcher === undefined) return;
    this.world.checker.step(`${launcher.name} is disconnected`);
    this.world.server.disconnect(launcher.zooKeeper);
  }

  private loseWrite(random: RandomSource): void {
    const launcher = this.victim(random);
    if (launcher === undefined) return;
    const when = random.next() < 0.3 ? 'before-applied' : 'after-applied';
    this.world.checker.step(`the next write of ${launcher.name} gets lost (${when})`);
    this.world.server.loseNextWrite(launcher.zooKeeper, when);
  }

  private lag(random: RandomSource): void {
    const launcher = this.victim(random);
    if (launcher === undefined) return;
    this.world.server.setLag(launcher.zooKeeper, between(random, 10, 1500));
    this.later(random, 1000, 20_000, () => this.world.server.setLag(launcher.zooKeeper, 0));
  }

  private outage(random: RandomSource): void {
    this.world.checker.step('ZooKeeper goes down');
    this.world.server.stop();
    // Also when all trouble ends before: nothing is left down.
    this.world.clock.schedule(between(random, 0, 30_000), () => {
      this.world.checker.step('ZooKeeper is up');
      this.world.server.start();
    });
  }

  private cutCloud(random: RandomSource): void {
    const launcher = this.victim(random);
    if (launcher === undefined) return;
    launcher.link.state = random.next() < 0.5 ? 'cut' : 'silent';
    this.world.checker.step(`${launcher.name} cannot reach the cloud (${launcher.link.state})`);
    this.later(random, 100, 60_000, () => (launcher.link.state = 'open'));
  }

  private spoilCloud(random: RandomSource): void {
    const fault = CLOUD_FAULTS[Math.floor(random.next() * CLOUD_FAULTS.length)] ?? 'create-errors';
    const rate = 0.1 + random.next() * 0.6;
    const faults = { ...CALM_CLOUD.faults, [fault]: rate } as CloudSettings['faults'];
    const instances = random.next() < 0.3 ? between(random, 2, 10) : Infinity;
    this.world.checker.step(`the cloud has ${fault} (${rate.toFixed(2)}) and room for ${instances}`);
    this.world.cloud.configure({ faults, quota: { instances, cores: Infinity, ram: Infinity } });
    this.world.scanFailures = random.next() < 0.3 ? random.next() / 2 : 0;
    this.later(random, 1000, 30_000, () => {
      this.world.cloud.configure(CALM_CLOUD);
      this.world.scanFailures = 0;
    });
  }

  private destroyInstance(random: RandomSource): void {
    const instances = this.world.cloud.existingInstances().filter(({ tags }) => tags['theirs'] === undefined);
    const instance = instances[Math.floor(random.next() * instances.length)];
    if (instance === undefined) return;
    this.world.checker.step(`the host of ${instance.id} breaks down`);
    this.world.cloud.destroyInstance(instance.id);
  }

  private reconfigure(random: RandomSource): void {
    const launcher = this.victim(random);
    if (launcher === undefined) return;
    this.configure(launcher, randomSite(random));
  }

  private configure(launcher: LauncherProcess, site: SiteConfig): void {
    const { checker } = this.world;
    checker.step(`${launcher.name} is configured with ${JSON.stringify(site)}`);
    launcher
      .apply(site)
      .catch((error: unknown) =>
        checker.report('X', `${launcher.name} does not take its configuration: ${String(error)}`),
      );
  }

  private addLauncher(random: RandomSource): void {
    if (this.world.launchers.filter(({ alive }) => alive).length < 4) this.start(randomSite(random));
  }
}

/** The site, without some of its providers and with other limits. */
function randomSite(random: RandomSource): SiteConfig {
  const providers = WHOLE_SITE.filter(() => random.next() < 0.8).map((provider) => ({
    ...provider,
    pools: provider.pools.map((pool) => (random.next() < 0.3 ? { ...pool, maxServers: between(random, 0, 10) } : pool)),
  }));
  return providers.length === 0 ? WHOLE_SITE : providers;
}

export function between(random: RandomSource, least: number, greatest: number): number {
  return Math.floor(least + random.next() * (greatest - least));
}
