/** Faults of launchers and of their connections to ZooKeeper. */

import { between } from '../chance.js';
import type { LauncherProcess } from '../launcher-process.js';
import { changedSite } from '../site.js';
import type { Stage, InjectedFault, WeightedFault } from './stage.js';

const MOST_LAUNCHERS = 4;

/** Returns a fault that affects one running launcher, if there is one. */
function toOne(what: (stage: Stage, launcher: LauncherProcess) => void): InjectedFault {
  return (stage) => {
    const launcher = stage.victim();
    if (launcher !== undefined) what(stage, launcher);
  };
}

const kill = toOne((stage, launcher) => {
  stage.world.checker.step(`${launcher.name} is killed`);
  launcher.kill();
  stage.later(0, 30_000, () => stage.start(launcher.site));
});

const killBetweenSteps = toOne((stage, launcher) => {
  const steps = between(stage.random, 1, 40);
  stage.world.checker.step(`${launcher.name} will be killed ${steps} steps from now`);
  launcher.killAfter(steps);
  stage.later(10_000, 40_000, () => {
    if (launcher.process.dead) stage.start(launcher.site);
  });
});

const stop = toOne((stage, launcher) => {
  const { checker } = stage.world;
  checker.step(`${launcher.name} is stopped`);
  launcher.stop().catch((error: unknown) => checker.report('X', `${launcher.name} does not stop: ${String(error)}`));
  stage.later(0, 30_000, () => stage.start(launcher.site));
});

const pause = toOne((stage, launcher) => {
  stage.world.checker.step(`${launcher.name} is paused`);
  launcher.pause();
  stage.later(100, 40_000, () => {
    stage.world.checker.step(`${launcher.name} goes on`);
    launcher.resume();
  });
});

const expire = toOne(({ world }, launcher) => {
  world.checker.step(`the session of ${launcher.name} expires`);
  world.server.expireSession(launcher.zooKeeper);
});

const partition = toOne((stage, launcher) => {
  const { world, random } = stage;
  const how = random.next() < 0.5 ? 'cut' : 'silent';
  world.checker.step(`${launcher.name} cannot reach ZooKeeper (${how})`);
  world.server.partition(launcher.zooKeeper, how);
  stage.later(100, 25_000, () => {
    if (!launcher.process.dead && !launcher.process.paused) world.server.heal(launcher.zooKeeper);
  });
});

const disconnect = toOne(({ world }, launcher) => {
  world.checker.step(`${launcher.name} is disconnected`);
  world.server.disconnect(launcher.zooKeeper);
});

const loseWrite = toOne(({ world, random }, launcher) => {
  const when = random.next() < 0.3 ? 'before-applied' : 'after-applied';
  world.checker.step(`the next write of ${launcher.name} gets lost (${when})`);
  world.server.loseNextWrite(launcher.zooKeeper, when);
});

const lag = toOne((stage, launcher) => {
  const { server } = stage.world;
  server.setLag(launcher.zooKeeper, between(stage.random, 10, 1500));
  stage.later(1000, 20_000, () => server.setLag(launcher.zooKeeper, 0));
});

const cutCloud = toOne((stage, launcher) => {
  launcher.link.state = stage.random.next() < 0.5 ? 'cut' : 'silent';
  stage.world.checker.step(`${launcher.name} cannot reach the cloud (${launcher.link.state})`);
  stage.later(100, 60_000, () => (launcher.link.state = 'open'));
});

const reconfigure = toOne((stage, launcher) => stage.configure(launcher, changedSite(stage.random)));

const add: InjectedFault = (stage) => {
  const running = stage.world.launchers.filter(({ alive }) => alive).length;
  if (running < MOST_LAUNCHERS) stage.start(changedSite(stage.random));
};

export const LAUNCHER_TROUBLES: readonly WeightedFault[] = [
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
