/** Injects random faults one after another, and ends all of them. */

import type { RandomSource } from '@nodepool/core';
import { between, oneOf, weighted } from './chance.js';
import { NO_CLOUD_FAULTS } from './cloud-view.js';
import type { LauncherProcess } from './launcher-process.js';
import { WHOLE_SITE, type Site } from './site.js';
import { CLOUD_FAULTS } from './faults/clouds.js';
import { IMAGE_FAULTS } from './faults/images.js';
import { DATA_FAULTS } from './faults/data.js';
import { LAUNCHER_FAULTS } from './faults/launchers.js';
import { MACHINE_FAULTS } from './faults/machines.js';
import type { FaultContext, WeightedFault } from './faults/fault-context.js';
import type { World } from './world.js';

/** Time between two faults (ms). */
const PAUSE_MS = { least: 200, greatest: 15_000 } as const;
/** The same in runs with images, so that launchers are often undisturbed (ms). */
const LONG_PAUSE_MS = { least: 5000, greatest: 90_000 } as const;
export const ALL_FAULTS: readonly WeightedFault[] = [
  ...LAUNCHER_FAULTS,
  ...CLOUD_FAULTS,
  ...DATA_FAULTS,
  ...MACHINE_FAULTS,
];

export class FaultInjector {
  private over = false;
  private started = 0;
  private readonly context: FaultContext;

  constructor(
    private readonly world: World,
    private readonly random: RandomSource,
    private readonly faults: readonly WeightedFault[],
    /** The site that all launchers serve at the end. */
    private readonly site: Site = WHOLE_SITE,
  ) {
    this.context = {
      world,
      random,
      victim: () => {
        const launcher = oneOf(random, this.running());
        if (launcher !== undefined) launcher.disturbedAt = world.clock.monotonic();
        return launcher;
      },
      later: (least, greatest, what) => {
        world.clock.schedule(between(random, least, greatest), () => {
          if (!this.over) what();
        });
      },
      start: (site) => this.start(site),
      configure: (launcher, site) => this.configure(launcher, site),
    };
  }

  /** Starts to inject faults. */
  begin(): void {
    const pause = this.faults === IMAGE_FAULTS ? LONG_PAUSE_MS : PAUSE_MS;
    this.world.clock.schedule(between(this.random, pause.least, pause.greatest), () => {
      if (this.over) return;
      weighted(this.random, this.faults)?.(this.context);
      this.begin();
    });
  }

  /** Ends all faults and ensures that launchers serve the whole site. */
  end(): void {
    const { world } = this;
    this.over = true;
    world.server.start();
    world.cloud.configure(world.calm);
    Object.assign(world.cloudFaults, NO_CLOUD_FAULTS);
    world.driverFaults.mode = 'none';
    world.scanFailures = 0;
    world.machines.restore();
    for (const launcher of world.launchers) {
      if (launcher.process.dead) continue;
      launcher.link.state = 'open';
      launcher.resume();
      world.server.setLag(launcher.zooKeeper, 0);
      launcher.killAfter(Infinity);
      if (launcher.alive) this.configure(launcher, this.site);
    }
    if (!world.launchers.some(({ alive }) => alive)) this.start();
    for (const builder of world.builders) builder.killAfter(Infinity);
    world.checker.step('all faults are over');
  }

  private running(): readonly LauncherProcess[] {
    return this.world.launchers.filter(({ alive, process }) => alive && !process.paused);
  }

  private start(site: Site = this.site): void {
    this.started += 1;
    this.world.startLauncher(`launcher-x${this.started}`, site);
  }

  private configure(launcher: LauncherProcess, site: Site): void {
    const { checker } = this.world;
    checker.step(`${launcher.name} is configured with ${JSON.stringify(site)}`);
    launcher
      .apply(site)
      .catch((error: unknown) =>
        checker.report('X', `${launcher.name} does not take its configuration: ${String(error)}`),
      );
  }
}
