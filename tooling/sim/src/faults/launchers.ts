/** Faults of launchers and of their connections to ZooKeeper. */

import { between } from '../chance.js';
import type { LauncherProcess } from '../launcher-process.js';
import { changedSite } from '../site.js';
import type { FaultContext, InjectedFault, WeightedFault } from './fault-context.js';

const MAX_LAUNCHERS = 4;

/** Returns a fault that affects one running launcher, if there is one. */
function toOne(what: (context: FaultContext, launcher: LauncherProcess) => void): InjectedFault {
  return (context) => {
    const launcher = context.victim();
    if (launcher !== undefined) what(context, launcher);
  };
}

export const kill = toOne((context, launcher) => {
  context.world.checker.step(`${launcher.name} is killed`);
  launcher.kill();
  context.later(0, 30_000, () => context.start(launcher.site));
});

export const killBetweenSteps = toOne((context, launcher) => {
  const steps = between(context.random, 1, 40);
  context.world.checker.step(`${launcher.name} will be killed ${steps} steps from now`);
  launcher.killAfter(steps);
  context.later(10_000, 40_000, () => {
    if (launcher.process.dead) context.start(launcher.site);
  });
});

export const stop = toOne((context, launcher) => {
  const { checker } = context.world;
  checker.step(`${launcher.name} is stopped`);
  launcher.stop().catch((error: unknown) => checker.report('X', `${launcher.name} does not stop: ${String(error)}`));
  context.later(0, 30_000, () => context.start(launcher.site));
});

export const pause = toOne((context, launcher) => {
  context.world.checker.step(`${launcher.name} is paused`);
  launcher.pause();
  context.later(100, 40_000, () => {
    context.world.checker.step(`${launcher.name} goes on`);
    launcher.resume();
  });
});

export const expire = toOne(({ world }, launcher) => {
  world.checker.step(`the session of ${launcher.name} expires`);
  world.server.expireSession(launcher.zooKeeper);
});

export const partition = toOne((context, launcher) => {
  const { world, random } = context;
  const how = random.next() < 0.5 ? 'cut' : 'silent';
  world.checker.step(`${launcher.name} cannot reach ZooKeeper (${how})`);
  world.server.partition(launcher.zooKeeper, how);
  context.later(100, 25_000, () => {
    if (!launcher.process.dead && !launcher.process.paused) world.server.heal(launcher.zooKeeper);
  });
});

export const disconnect = toOne(({ world }, launcher) => {
  world.checker.step(`${launcher.name} is disconnected`);
  world.server.disconnect(launcher.zooKeeper);
});

export const loseWrite = toOne(({ world, random }, launcher) => {
  const when = random.next() < 0.3 ? 'before-applied' : 'after-applied';
  world.checker.step(`the next write of ${launcher.name} gets lost (${when})`);
  world.server.loseNextWrite(launcher.zooKeeper, when);
});

export const lag = toOne((context, launcher) => {
  const { server } = context.world;
  server.setLag(launcher.zooKeeper, between(context.random, 10, 1500));
  context.later(1000, 20_000, () => server.setLag(launcher.zooKeeper, 0));
});

const cutCloud = toOne((context, launcher) => {
  launcher.link.state = context.random.next() < 0.5 ? 'cut' : 'silent';
  context.world.checker.step(`${launcher.name} cannot reach the cloud (${launcher.link.state})`);
  context.later(100, 60_000, () => (launcher.link.state = 'open'));
});

const reconfigure = toOne((context, launcher) => context.configure(launcher, changedSite(context.random)));

const add: InjectedFault = (context) => {
  const running = context.world.launchers.filter(({ alive }) => alive).length;
  if (running < MAX_LAUNCHERS) context.start(changedSite(context.random));
};

export const LAUNCHER_FAULTS: readonly WeightedFault[] = [
  [3, kill],
  [5, killBetweenSteps],
  [2, stop],
  [3, pause],
  [3, expire],
  [4, partition],
  [2, disconnect],
  [5, loseWrite],
  [2, lag],
  [3, cutCloud],
  [3, reconfigure],
  [2, add],
];
