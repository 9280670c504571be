/** Finds the conditions that need an operator: what is wrong, since when, the cause, the effect and a remedy. */

import { formatProblem } from '@nodepool/config';
import { damagedBackingNodes, strandedNodes } from '@nodepool/store';
import { groupBy, oncePerMoment, shortened, type Observed } from '../sources.js';
import type { Problem, ProviderStatus } from '../../client/model.js';
import { STUCK_DELETION_MS } from '../../facts/health.js';
import { latestDecision } from '../../explain/explanation.js';
import { imagesStatus } from '../images.js';
import { labelsStatus } from '../labels.js';
import { providersStatus } from '../providers.js';
import { acceptedByProvider, reasonsOf } from '../requests.js';
import { imageProblems } from './images.js';
import { failedRequests, labelProblems } from './labels.js';
import { configurationProblems, recordProblems, suspendedDeletions, zookeeperProblems } from './programs.js';
import { launcherProblems } from './launchers.js';
import { damagedBackingProblems, strandedNodesProblems, stuckDeletions } from './nodes.js';
import { fullPools, providerProblems } from './providers.js';
import type { LauncherFacts, ProblemSources } from './sources.js';

const SEVERITIES = ['critical', 'warning', 'info'] as const;
const MAX_DETAILS = 10;
/** The id of a pool begins with the host of its launcher. */
const POOL_ID = /^(.+)-PoolWorker\./;

export const problemsOf = oncePerMoment((observed): readonly Problem[] => {
  const { store, status, clock } = observed;
  const providers = providersStatus(observed);
  const problems = status.problems();
  const refusedSince = status.refusedSince();
  const zookeeper = status.recorder.zooKeeper.read();
  const unreadable = [...store.nodes.corrupt(), ...store.requests.corrupt(), ...store.images.corrupt()];
  return findProblems({
    zookeeper: { state: store.zooKeeper.state, since: zookeeper.since / 1000, lastProblem: zookeeper.lastProblem },
    complete: store.complete,
    configuration: {
      problems: problems.slice(0, MAX_DETAILS).map((problem) => shortened(formatProblem(problem))),
      count: problems.length,
      since: refusedSince === undefined ? null : refusedSince / 1000,
    },
    unreadable: {
      records: unreadable.slice(0, MAX_DETAILS).map(({ path, reason }) => shortened(`${path}: ${reason}`)),
      count: unreadable.length,
    },
    providers,
    launches: new Map(
      providers.flatMap(({ name }) => {
        const recent = status.recorder.failures.recent(name);
        return recent === undefined ? [] : [[name, recent]];
      }),
    ),
    lastServed: lastServed(observed, providers),
    suspensions: store.suspensions.all(),
    launchers: launchersOf(observed),
    troubles: troublesOf(observed),
    stuck: stuckNodes(observed),
    stranded: strandedNodes(store, clock.now()),
    damagedBacking: damagedBackingNodes(store.nodes),
    labels: labelsStatus(observed),
    reasons: reasonsOf(observed).groups(),
    accepted: acceptedByProvider(observed),
    failed: failedRequests(observed),
    images: imagesStatus(observed),
    builders: [...store.components.all('builder')].map(({ component }) => component),
    now: clock.now() / 1000,
  });
});

/** Returns the problems: that of ZooKeeper, then the most severe and then the oldest first. */
export function findProblems(sources: ProblemSources): Problem[] {
  const problems = [
    ...configurationProblems(sources),
    ...sources.providers.flatMap((provider) => providerProblems(provider, sources)),
    ...labelProblems(sources),
    ...imageProblems(sources),
    ...fullPools(sources),
    ...strandedNodesProblems(sources),
    ...damagedBackingProblems(sources),
    ...stuckDeletions(sources),
    ...launcherProblems(sources),
    ...recordProblems(sources),
    ...suspendedDeletions(sources),
  ];
  const rank = ({ severity }: Problem): number => SEVERITIES.indexOf(severity);
  problems.sort((a, b) => rank(a) - rank(b) || (a.since ?? Infinity) - (b.since ?? Infinity));
  // Without ZooKeeper all other problems are old.
  return [...zookeeperProblems(sources), ...problems];
}

function launchersOf({ store, status }: Observed): LauncherFacts[] {
  const all = [...store.components.all('launcher')].map(({ component }) => component);
  return all.map(({ hostname, version, configuration, unserved = {} }) => ({
    ...{ hostname, unserved, isOwn: hostname === status.hostname && version === status.version },
    ...(configuration === undefined ? {} : { configuration }),
  }));
}

function troublesOf({ store, activity }: Observed): ProblemSources['troubles'] {
  const own = new Set(activity().flatMap(({ pools }) => pools.map(({ id }) => id)));
  return [...store.components.pools()].flatMap(({ id, hostname, provider_name: provider, trouble }) =>
    own.has(id) || trouble === undefined || trouble === null ? [] : [{ ...trouble, hostname, provider }],
  );
}

/** Returns the launchers that served the providers that none serves now. */
function lastServed({ store }: Observed, providers: readonly ProviderStatus[]): ProblemSources['lastServed'] {
  const gone = providers.filter(({ state }) => state === 'gone').map(({ name }) => name);
  if (gone.length === 0) return new Map();
  const departed = groupBy(store.components.departedPools(), ({ pool }) => pool.provider_name);
  return new Map(
    gone.map((name) => {
      const seen = departed.get(name) ?? [];
      const launchers = [...store.nodes.ofProvider(name)].map(({ node }) => node.launcher ?? '');
      const recorded = [...new Set(launchers)].flatMap((id) => POOL_ID.exec(id)?.[1] ?? []);
      const known = seen.length === 0 ? recorded : seen.map(({ pool }) => pool.hostname);
      const ended = known.filter((host) => !store.components.hasLauncher(host));
      const hosts = ended.length === 0 ? known : ended;
      const left = seen.length === 0 ? null : Math.max(...seen.map((each) => each.left)) / 1000;
      const isRunning = known.length > 0 && ended.length === 0;
      return [name, { hosts: [...new Set(hosts)].sort(), isRunning, left }];
    }),
  );
}

function stuckNodes({ store, clock, decisions }: Observed): ProblemSources['stuck'] {
  const stuck = [...store.nodes.inState('deleting')].filter(
    ({ node }) => clock.now() - node.state_time * 1000 >= STUCK_DELETION_MS,
  );
  return stuck.map((entry) => ({ entry, answer: latestDecision(decisions.of('node', entry.id)) ?? 'no answer yet' }));
}
