/** The scenes of the scenario. Each returns rows for the table. */

import { randomBytes } from 'node:crypto';
import { sleep, systemClock } from '@nodepool/core';
import type { RequestorResult } from '@nodepool/harness';
import type { ScenarioCloud } from './cloud.js';
import { startClosableProxy } from './closable-proxy.js';
import type { ProviderOptions, RunningLauncher, Site } from './site.js';
import { CloudWatch, type RemainingResources } from './watch.js';

/** Sizes of the scenes. */
export interface Sizes {
  /** Number of nodes requested at once. */
  readonly nodes: number;
  /** Number of nodes with a floating IP and a volume among them. */
  readonly equipped: number;
  /** Number of requests to the project with a quota of three servers. */
  readonly limited: number;
  /** Number of launches during which the launcher is killed. */
  readonly killed: number;
  /** Number of nodes requested while keystone is restarted. */
  readonly restarted: number;
  /** Number of requests to two regions. The first one becomes full, and then unreachable. */
  readonly regions: number;
}

export interface Row {
  readonly scene: string;
  readonly subject: string;
  readonly measured: string;
  /** The required value; empty if the row is only informative. */
  readonly target: string;
  readonly met: boolean;
}

export interface SceneContext {
  readonly site: Site;
  readonly cloud: ScenarioCloud;
  readonly sizes: Sizes;
  readonly say: (line: string) => void;
}

export interface Scene {
  readonly name: string;
  readonly title: (sizes: Sizes) => string;
  readonly run: (context: SceneContext) => Promise<Row[]>;
}

/** Maximum number of calls per node. */
const CALLS_PER_NODE = 6;
/** Quota of servers in the limited project. */
const LIMITED_SERVERS = 3;
const HOLD_SECONDS = 1;

export const scenes: readonly Scene[] = [
  { name: 'a', title: ({ nodes }) => `${nodes} nodes requested at once`, run: manyAtOnce },
  { name: 'e', title: ({ equipped }) => `${equipped} nodes with a floating IP and a volume each`, run: equippedNodes },
  {
    name: 'b',
    title: ({ limited }) => `${limited} requests to a project that holds ${LIMITED_SERVERS} servers`,
    run: smallProject,
  },
  {
    name: 'c',
    title: ({ killed }) => `kill -9 of the launcher in the middle of ${killed} launches`,
    run: killedLauncher,
  },
  {
    name: 'd',
    title: ({ restarted }) => `keystone restarted while ${restarted} nodes are launched`,
    run: restartedKeystone,
  },
  {
    name: 'f',
    title: ({ regions }) => `${regions} requests to two regions, one of them over its quota, then with its API stopped`,
    run: twoRegions,
  },
];

async function manyAtOnce(context: SceneContext): Promise<Row[]> {
  const { nodes } = context.sizes;
  return await runScene(context, 'a', { cloud: 'real' }, async ({ site, launcher }) => {
    const before = await launcher.apiCalls();
    const result = await site.ask(nodes, HOLD_SECONDS);
    await site.clean(launcher);
    const calls = difference(await launcher.apiCalls(), before);
    context.say(`calls: ${[...calls].map(([operation, count]) => `${operation} ${count}`).join(', ')}`);
    const perNode = sum(calls) / nodes;
    return [
      ...served('a', result, nodes),
      row(
        'a',
        'API calls per node, polling included',
        perNode.toFixed(2),
        `< ${CALLS_PER_NODE}`,
        perNode < CALLS_PER_NODE,
      ),
    ];
  });
}

async function equippedNodes(context: SceneContext): Promise<Row[]> {
  const { equipped } = context.sizes;
  const options = { cloud: 'real', floatingIp: true, bootFromVolume: true };
  return await runScene(context, 'e', options, async ({ site, launcher }) => {
    const before = await launcher.apiCalls();
    const result = await site.ask(equipped, HOLD_SECONDS);
    await site.clean(launcher);
    const perNode = sum(difference(await launcher.apiCalls(), before)) / equipped;
    return [...served('e', result, equipped), row('e', 'API calls per node', perNode.toFixed(2), '', true)];
  });
}

async function smallProject(context: SceneContext): Promise<Row[]> {
  const { limited } = context.sizes;
  return await runScene(context, 'b', { cloud: 'limited' }, async ({ site, watch }) => {
    const result = await site.ask(limited, HOLD_SECONDS);
    const most = watch.mostServers;
    const target = `≤ ${LIMITED_SERVERS}`;
    return [
      ...served('b', result, limited),
      row(
        'b',
        'maximum number of concurrent servers in nova',
        String(most),
        target,
        most <= LIMITED_SERVERS && most > 0,
      ),
    ];
  });
}

async function killedLauncher(context: SceneContext): Promise<Row[]> {
  const { killed } = context.sizes;
  return await runScene(context, 'c', { cloud: 'real' }, async ({ site, launcher, watch, start }) => {
    const asked = site.ask(killed, HOLD_SECONDS);
    await watch.untilSeen(Math.ceil(killed / 3));
    await launcher.program.kill();
    context.say(`the launcher was killed when it had ${watch.seen} servers; starting a new one`);
    const second = await start();
    const result = await asked;
    await site.clean(second);
    const duplicates = watch.duplicates;
    return [
      ...served('c', result, killed),
      row('c', 'launch attempts with two servers', String(duplicates), '0', duplicates === 0),
      row('c', 'created servers', String(watch.seen), '', true),
    ];
  });
}

async function restartedKeystone(context: SceneContext): Promise<Row[]> {
  const { restarted } = context.sizes;
  const { restartKeystone } = context.cloud;
  if (restartKeystone === undefined) {
    return [row('d', 'skipped: this command has not started the services (set OSTACK to their folder)', '-', '', true)];
  }
  return await runScene(context, 'd', { cloud: 'real' }, async ({ site, launcher, watch }) => {
    const asked = site.ask(restarted, HOLD_SECONDS);
    await watch.untilSeen(Math.ceil(restarted / 4));
    context.say('keystone is stopped');
    await restartKeystone();
    context.say('keystone is running again');
    const result = await asked;
    await site.clean(launcher);
    return served('d', result, restarted);
  });
}

/** Maximum number of concurrent requests in the scene with two regions. */
const PARALLEL = 30;

async function twoRegions({ site, cloud, sizes: { regions: count }, say }: SceneContext): Promise<Row[]> {
  const proxy = await startClosableProxy(cloud.cloudsYaml, 'limited', site.folder);
  const id = randomBytes(3).toString('hex');
  const large = { name: `scenario-f-large-${id}`, cloud: 'real' };
  const small = { name: `scenario-f-small-${id}`, cloud: proxy.cloud, ignoreQuota: true, priority: 50 };
  const watches = [
    await CloudWatch.start(cloud.cloudsYaml, 'real', large.name),
    await CloudWatch.start(cloud.cloudsYaml, 'limited', small.name),
  ] as const;
  const [ofLarge, ofSmall] = watches;
  let launcher: RunningLauncher | undefined;
  try {
    launcher = await site.launcher([large, small], { cloudsYaml: proxy.cloudsYaml });
    const before = await launcher.apiCalls();
    const asked = site.ask(count, HOLD_SECONDS, PARALLEL);
    await ofSmall.untilSeen(LIMITED_SERVERS);
    await ofLarge.untilSeen(Math.ceil(count / 4));
    say('the API of the small region is stopped');
    await proxy.close();
    await sleep(systemClock, cloud.regionAwayMs);
    await proxy.open();
    say('the API of the small region is running again');
    const result = await asked;
    await site.clean(launcher);
    const perNode = sum(difference(await launcher.apiCalls(), before)) / count;
    return [
      ...served('f', result, count),
      row('f', 'API calls per node, of both regions', perNode.toFixed(2), '', true),
      row('f', 'created servers of both regions', `${ofLarge.seen} and ${ofSmall.seen}`, '', true),
      leftRow('f', await ofLarge.end()),
      leftRow('f', await ofSmall.end()),
    ];
  } finally {
    await launcher?.program.stop();
    await Promise.all(watches.map((watch) => watch.stop()));
    await proxy.close();
  }
}

interface RunningScene {
  readonly site: Site;
  readonly launcher: RunningLauncher;
  readonly watch: CloudWatch;
  /** Starts another launcher with the same provider. */
  readonly start: () => Promise<RunningLauncher>;
}

/** Starts the launchers and the observation, runs the scene, and then checks what is left in the cloud. */
async function runScene(
  { site, cloud }: SceneContext,
  scene: string,
  options: Omit<ProviderOptions, 'name'>,
  run: (scene: RunningScene) => Promise<Row[]>,
): Promise<Row[]> {
  const provider: ProviderOptions = { ...options, name: `scenario-${scene}-${randomBytes(3).toString('hex')}` };
  const launchers: RunningLauncher[] = [];
  const start = async (): Promise<RunningLauncher> => {
    const launcher = await site.launcher([provider]);
    launchers.push(launcher);
    return launcher;
  };
  const watch = await CloudWatch.start(cloud.cloudsYaml, options.cloud, provider.name);
  const began = systemClock.monotonic();
  try {
    const rows = await run({ site, launcher: await start(), watch, start });
    const seconds = (systemClock.monotonic() - began) / 1000;
    return [
      ...rows,
      row(scene, 'duration, including the start of the launcher', `${seconds.toFixed(1)} s`, '', true),
      leftRow(scene, await watch.end()),
    ];
  } finally {
    for (const { program } of launchers) await program.stop();
    await watch.stop();
  }
}

function served(scene: string, { summary }: RequestorResult, count: number): Row[] {
  const outcomes = summary?.outcomes ?? {};
  const fulfilled = outcomes['fulfilled'] ?? 0;
  const problems = summary?.problems ?? ['the requestor ended without a summary'];
  const latency = summary?.latency_s;
  const others = Object.entries(outcomes).filter(([outcome]) => outcome !== 'fulfilled');
  const text = [`${fulfilled} fulfilled`, ...others.map(([outcome, times]) => `${times} ${outcome}`)].join(', ');
  return [
    row(scene, 'requests', text, `${count} fulfilled`, fulfilled === count),
    row(
      scene,
      'problems of the requestor',
      problems.length === 0 ? 'none' : problems.join('; ').slice(0, 200),
      'none',
      problems.length === 0,
    ),
    ...(latency === undefined
      ? []
      : [
          row(
            scene,
            'time until a request was fulfilled: median, longest',
            `${latency.median.toFixed(1)} s, ${latency.max.toFixed(1)} s`,
            '',
            true,
          ),
        ]),
  ];
}

function leftRow(scene: string, left: RemainingResources): Row {
  const some = Object.entries(left).filter(([, count]) => count > 0);
  const text = some.length === 0 ? 'nothing' : some.map(([kind, count]) => `${count} ${kind}`).join(', ');
  return row(scene, 'left in nova, neutron, cinder', text, 'nothing', some.length === 0);
}

function row(scene: string, subject: string, measured: string, target: string, met: boolean): Row {
  return { scene, subject, measured, target, met };
}

function difference(after: ReadonlyMap<string, number>, before: ReadonlyMap<string, number>): Map<string, number> {
  return new Map(
    [...after]
      .map(([key, count]): [string, number] => [key, count - (before.get(key) ?? 0)])
      .filter(([, count]) => count > 0),
  );
}

function sum(calls: ReadonlyMap<string, number>): number {
  return [...calls.values()].reduce((total, count) => total + count, 0);
}
