/** Faults of bridges, of their connections to ZooKeeper and to GitHub, of GitHub itself, and of runners. */

import type { RandomSource } from '@nodepool/core';
import type { RunnerBehaviour } from '@nodepool/simulated-github';
import { between, oneOf } from '../chance.js';
import type { BridgeProcess } from './bridge-process.js';
import type { BridgeWorld } from './bridge-world.js';

export interface BridgeFaultContext {
  readonly bridges: BridgeWorld;
  readonly random: RandomSource;
  /** Schedules an action within the given range (ms), unless all faults have ended by then. */
  readonly later: (least: number, greatest: number, what: () => void) => void;
}

export type BridgeFault = (context: BridgeFaultContext) => void;

const MAX_BRIDGES = 3;
/** Operations whose answers get lost, or that fail. */
const OPERATIONS = ['apps', 'runners', 'runnerscalesets', 'sessions', 'messages', 'agents'] as const;
const JOB_MESSAGES = ['JobAssigned', 'JobStarted', 'JobCompleted'] as const;

/** Returns a fault of one running bridge, if there is one. */
function toOne(what: (context: BridgeFaultContext, bridge: BridgeProcess) => void): BridgeFault {
  return (context) => {
    const { bridges, random } = context;
    const bridge = oneOf(random, bridges.bridges.filter(({ alive, process }) => alive && !process.paused)); // prettier-ignore
    if (bridge !== undefined) what(context, bridge);
  };
}

const kill = toOne(({ bridges, later }, bridge) => {
  bridges.world.checker.step(`${bridge.name} is killed`);
  bridge.kill();
  later(0, 30_000, () => void bridges.startBridge());
});

const killBetweenSteps = toOne(({ bridges, random, later }, bridge) => {
  const steps = between(random, 1, 40);
  bridges.world.checker.step(`${bridge.name} will be killed ${steps} steps from now`);
  bridge.killAfter(steps);
  later(10_000, 40_000, () => {
    if (bridge.process.dead) bridges.startBridge();
  });
});

const stop = toOne(({ bridges, later }, bridge) => {
  const { checker } = bridges.world;
  checker.step(`${bridge.name} is stopped`);
  bridge.stop().catch((error: unknown) => checker.report('X', `${bridge.name} does not stop: ${String(error)}`));
  later(0, 30_000, () => void bridges.startBridge());
});

const pause = toOne(({ bridges, later }, bridge) => {
  bridges.world.checker.step(`${bridge.name} is paused`);
  bridge.pause();
  later(100, 40_000, () => bridge.resume());
});

const expire = toOne(({ bridges: { world } }, bridge) => {
  world.checker.step(`the session of ${bridge.name} expires`);
  world.server.expireSession(bridge.zooKeeper);
});

const partition = toOne(({ bridges: { world }, random, later }, bridge) => {
  const how = random.next() < 0.5 ? 'cut' : 'silent';
  world.checker.step(`${bridge.name} cannot reach ZooKeeper (${how})`);
  world.server.partition(bridge.zooKeeper, how);
  later(100, 25_000, () => {
    if (!bridge.process.dead && !bridge.process.paused) world.server.heal(bridge.zooKeeper);
  });
});

const loseWrite = toOne(({ bridges: { world }, random }, bridge) => {
  const when = random.next() < 0.3 ? 'before-applied' : 'after-applied';
  world.checker.step(`the next write of ${bridge.name} gets lost (${when})`);
  world.server.loseNextWrite(bridge.zooKeeper, when);
});

const lag = toOne(({ bridges: { world }, random, later }, bridge) => {
  world.server.setLag(bridge.zooKeeper, between(random, 10, 1500));
  later(1000, 20_000, () => world.server.setLag(bridge.zooKeeper, 0));
});

const loseAnswers: BridgeFault = ({ bridges: { github, world }, random }) => {
  const on = oneOf(random, OPERATIONS) ?? 'agents';
  world.checker.step(`answers of GitHub to ${on} get lost after their effect`);
  github.faults.add({ on, times: between(random, 1, 4), fault: { kind: 'cut', when: 'after' } });
};

const failCalls: BridgeFault = ({ bridges: { github, world }, random }) => {
  const on = oneOf(random, OPERATIONS) ?? 'agents';
  const status = oneOf(random, [401, 429, 500, 503]) ?? 503;
  const wait = status === 429 ? { retryAfter: between(random, 1, 20) } : {};
  world.checker.step(`GitHub answers calls of ${on} with ${status}`);
  github.faults.add({ on, times: between(random, 1, 6), fault: { kind: 'status', status, ...wait } });
};

const hangCalls: BridgeFault = ({ bridges: { github, world }, random }) => {
  const on = oneOf(random, OPERATIONS) ?? 'agents';
  const when = random.next() < 0.5 ? 'before' : 'after';
  world.checker.step(`GitHub never answers a call of ${on} (${when} its effect)`);
  github.faults.add({ on, times: 1, fault: { kind: 'hang', when } });
};

const githubAway: BridgeFault = ({ bridges: { github, world }, random }) => {
  const ms = between(random, 1000, 90_000);
  world.checker.step(`GitHub is away for ${ms} ms`);
  github.goAway(ms);
};

const revoke: BridgeFault = ({ bridges: { github }, random }) => {
  github.revokeTokens(oneOf(random, ['installation', 'admin', 'queue'] as const) ?? 'queue');
};

const loseSession: BridgeFault = ({ bridges: { github, world } }) => {
  world.checker.step('GitHub loses the session');
  github.loseSession('linux');
};

const jumpClock: BridgeFault = ({ bridges: { github }, random }) => {
  github.configure({ clockAheadMs: between(random, -300_000, 300_000) });
};

const spoilMessages: BridgeFault = ({ bridges: { github, world }, random }) => {
  const on = oneOf(random, JOB_MESSAGES) ?? 'JobStarted';
  const fault = oneOf(random, [
    { kind: 'lost' },
    { kind: 'repeated' },
    { kind: 'late', ms: between(random, 100, 60_000) },
  ] as const);
  if (fault === undefined) return;
  world.checker.step(`messages ${on} of GitHub are ${fault.kind}`);
  github.messageFaults.add({ on, times: between(random, 1, 5), fault });
};

const spoilRunner: BridgeFault = ({ bridges: { github, world }, random }) => {
  const all: readonly RunnerBehaviour[] = ['never-connects', 'dies-at-once', 'ends-without-job', 'hangs-online'];
  const behaviour = oneOf(random, all) ?? 'dies-at-once';
  world.checker.step(`the next runner ${behaviour}`);
  github.faults.add({ on: 'runnerscalesets.generateJitConfig', times: 1, fault: { kind: 'runner', behaviour } });
};

const killRunner: BridgeFault = ({ bridges: { machines, world }, random }) => {
  const node = oneOf(random, machines.running());
  if (node === undefined) return;
  world.checker.step(`the runner on node ${node} is killed`);
  machines.kill(node);
};

const cutNode: BridgeFault = ({ bridges: { machines, world }, random, later }) => {
  const node = oneOf(random, machines.running());
  if (node === undefined) return;
  world.checker.step(`node ${node} cannot be reached`);
  machines.setReachable(node, false);
  later(500, 60_000, () => machines.setReachable(node, true));
};

const removeRunner: BridgeFault = ({ bridges: { github, machines, world }, random }) => {
  const runner = oneOf(random, github.inspect.runners());
  if (runner === undefined) return;
  world.checker.step(`a user removes runner ${runner.name}`);
  machines.killed.add(runner.name);
  github.removeRunner(runner.name);
};

const add: BridgeFault = ({ bridges }) => {
  if (bridges.bridges.filter(({ alive }) => alive).length < MAX_BRIDGES) bridges.startBridge();
};

const killLauncher: BridgeFault = ({ bridges: { world }, random, later }) => {
  const launcher = oneOf(random, world.launchers.filter(({ alive, process }) => alive && !process.paused)); // prettier-ignore
  if (launcher === undefined) return;
  world.checker.step(`${launcher.name} is killed`);
  launcher.kill();
  later(0, 30_000, () => void world.startLauncher(`${launcher.name}x`, launcher.site));
};

const stopZooKeeper: BridgeFault = ({ bridges: { world }, later }) => {
  world.checker.step('ZooKeeper is away');
  world.server.stop();
  later(1000, 40_000, () => world.server.start());
};

export const BRIDGE_FAULTS: readonly (readonly [weight: number, fault: BridgeFault])[] = [
  [3, kill],
  [8, killBetweenSteps],
  [2, stop],
  [2, pause],
  [3, expire],
  [3, partition],
  [5, loseWrite],
  [2, lag],
  [5, loseAnswers],
  [4, failCalls],
  [2, hangCalls],
  [2, githubAway],
  [2, revoke],
  [2, loseSession],
  [1, jumpClock],
  [4, spoilMessages],
  [3, spoilRunner],
  [2, killRunner],
  [3, cutNode],
  [1, removeRunner],
  [1, add],
  [1, killLauncher],
  [1, stopZooKeeper],
];

/** Ends all faults. Some bridge and some launcher runs afterwards. */
export function endFaults(bridges: BridgeWorld): void {
  const { world, github, machines } = bridges;
  world.server.start();
  github.faults.clear();
  github.messageFaults.clear();
  machines.reachAll();
  for (const bridge of bridges.bridges) {
    if (bridge.process.dead) continue;
    bridge.resume();
    world.server.setLag(bridge.zooKeeper, 0);
    bridge.killAfter(Infinity);
  }
  if (!bridges.bridges.some(({ alive }) => alive)) bridges.startBridge();
  world.checker.step('all faults are over');
}
