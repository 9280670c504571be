/** Checks the records: stale locks, records that no program works on, and unreadable ones. */

import { LAUNCHING_STATES, type NodeState } from '@nodepool/core';
import {
  damagedBackingNodes,
  strandedNodes,
  unresolvedFailure,
  type NodeEntry,
  type RequestEntry,
  type Store,
} from '@nodepool/store';
import type { NodepoolConfig } from '@nodepool/config';
import { counted, Findings, firstNames, type Finding } from './finding.js';

/** Launchers check every record within minutes; older problems need an operator. */
const GRACE_S = 600;
const LONG_S = 3600;
/** Launchers delete orphaned locks; more than this number indicates that they do not. */
const MANY_LOCKS = 100;

const LEAVING: readonly NodeState[] = ['used', 'failed', 'aborted', 'deleting', 'deleted'];

export interface RecordSources {
  readonly store: Store;
  readonly config: Pick<NodepoolConfig, 'providers' | 'brokenProviders' | 'diskImages'>;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** True if a launcher has reported its problems; findings that are among them are left out. */
  readonly isReported: boolean;
}

export function checkRecords(sources: RecordSources): readonly Finding[] {
  const findings = new Findings('records');
  reportNodes(sources, findings);
  reportRequests(sources, findings);
  reportImages(sources, findings);
  if (!sources.isReported) {
    reportUnreadable(sources, findings);
    reportDamage(sources, findings);
    reportSuspensions(sources, findings);
  }
  if (findings.list.length === 0)
    findings.ok('all records', 'are readable, and no program has left one alone for ten minutes');
  return findings.list;
}

function reportSuspensions({ store }: RecordSources, findings: Findings): void {
  for (const { provider, reason, by } of store.suspensions.all()) {
    findings.error(
      provider === null ? 'all providers' : `provider ${provider}`,
      `deletions of resources without a record are suspended by ${by}: ${reason}`,
      'list what has no record (`nodepool orphans list`), adopt what is needed, delete the rest, then run ' +
        '`nodepool orphans confirm`',
    );
  }
}

function reportUnreadable({ store: { nodes, requests, images } }: RecordSources, findings: Findings): void {
  for (const { path, reason } of [...nodes.corrupt(), ...requests.corrupt(), ...images.corrupt()]) {
    findings.error(
      path,
      `cannot be read: ${reason}`,
      'find the program that wrote it; delete the record if no program needs it',
    );
  }
}

function reportNodes({ store, config, now, isReported }: RecordSources, findings: Findings): void {
  const nodes = [...store.nodes.all()];
  const olderThan =
    (seconds: number) =>
    ({ node }: NodeEntry) =>
      now / 1000 - node.state_time > seconds;
  const isIn =
    (states: readonly NodeState[]) =>
    ({ node }: NodeEntry) =>
      states.includes(node.state);
  const report = (found: readonly NodeEntry[], reason: string, remedy: string): void => {
    if (found.length === 0) return;
    const text = found.length === 1 ? reason : `${counted(found.length, 'node')}: ${reason}`;
    findings.warning(`nodes ${firstNames(found.map(({ id }) => id))}`, text, remedy);
  };
  const served = servedProviders(store);
  const isOrphan = ({ node: { provider } }: NodeEntry): boolean =>
    provider !== null &&
    !config.providers.has(provider) &&
    !config.brokenProviders.has(provider) &&
    !served.has(provider);
  const orphans = new Set(nodes.filter(isOrphan));
  const others = nodes.filter((entry) => !orphans.has(entry));
  report(
    isReported ? [] : [...orphans],
    'their provider is neither configured nor served, so no launcher deletes them',
    'start the launcher that served it, or configure the provider again; only if its cloud no longer exists: nodepool erase PROVIDER',
  );
  report(
    others.filter(isIn(LAUNCHING_STATES)).filter((entry) => !entry.locked && olderThan(GRACE_S)(entry)),
    'their launch was interrupted, and no launcher has resumed it for 10 minutes',
    'nodepool explain node ID; is a launcher of the provider running?',
  );
  report(
    others.filter(isIn(['in-use'])).filter((entry) => !entry.locked && olderThan(GRACE_S)(entry)),
    'in use without a lock: their requestor has vanished, and no launcher has deleted them for 10 minutes',
    'nodepool delete ID; is a launcher of the provider running?',
  );
  report(
    others
      .filter(isIn(isReported ? LEAVING.filter((state) => state !== 'deleting') : LEAVING))
      .filter(olderThan(LONG_S)),
    'their deletion has not ended for an hour',
    'nodepool describe node ID; delete the server in the cloud if its API refuses to',
  );
  report(
    others.filter(isIn(['ready'])).filter((entry) => entry.locked && olderThan(LONG_S)(entry)),
    'ready, but locked for up to an hour or longer: a requestor holds them without using them',
    'find the requestor with `nodepool describe node ID`',
  );
  report(
    others.filter(
      (entry) =>
        isIn(['ready'])(entry) && !entry.locked && olderThan(GRACE_S)(entry) && isAllocatedToNone(store, entry),
    ),
    'allocated to a request that does not exist any more',
    'is a launcher of the provider running? It releases such nodes',
  );
  report(
    isReported ? [] : strandedNodes(store, now),
    'ready, but no launcher serves their pool with their label, so no request gets them',
    'start the launcher of the pool, configure the pool again, or nodepool delete ID',
  );
}

/** Returns the names of the providers that a launcher serves. */
function servedProviders({ components }: Store): ReadonlySet<string> {
  return new Set([...components.pools()].map((pool) => pool.provider_name));
}

function reportDamage({ store }: RecordSources, findings: Findings): void {
  for (const { id, damage } of damagedBackingNodes(store.nodes)) {
    const remedy = 'find the program that wrote it; launchers release the node once no node is on it';
    findings.warning(`node ${id}`, `gets no further nodes: ${damage}`, remedy);
  }
}

function isAllocatedToNone({ requests }: Store, { node }: NodeEntry): boolean {
  return node.allocated_to !== null && requests.get(node.allocated_to) === undefined;
}

function reportRequests({ store, now }: RecordSources, findings: Findings): void {
  const requests = [...store.requests.all()];
  const older = (entry: RequestEntry, seconds: number): boolean => now / 1000 - entry.request.state_time > seconds;
  const report = (found: readonly RequestEntry[], reason: string, remedy: string): void => {
    if (found.length === 0) return;
    const text = found.length === 1 ? reason : `${counted(found.length, 'request')}: ${reason}`;
    findings.warning(`requests ${firstNames(found.map(({ id }) => id))}`, text, remedy);
  };
  const inState = (state: string): readonly RequestEntry[] => requests.filter(({ request }) => request.state === state);
  report(
    inState('requested').filter((entry) => older(entry, LONG_S)),
    'waiting for more than an hour',
    'nodepool explain request ID',
  );
  report(
    inState('pending').filter((entry) => !entry.locked && older(entry, GRACE_S)),
    'accepted by a launcher that has vanished, and taken over by none for 10 minutes',
    'nodepool explain request ID; is a launcher of its labels running?',
  );
  report(
    [...inState('fulfilled'), ...inState('failed')].filter((entry) => older(entry, LONG_S)),
    'answered more than an hour ago, but their requestor has not reacted',
    'look at the requestor; delete the request in ZooKeeper if the requestor does not exist any more',
  );
  const locks = [...store.requests.orphanedLocks()];
  if (locks.length > MANY_LOCKS) {
    const reason = `${locks.length} locks of requests that do not exist any more`;
    findings.warning('requests-lock', reason, 'is a launcher running? Launchers delete these locks');
  }
}

function reportImages({ store, config, isReported }: RecordSources, findings: Findings): void {
  const { images } = store;
  const served = servedProviders(store);
  const builders = [...store.components.all('builder')].map(({ component }) => component);
  const providers = new Set<string>();
  for (const image of images.images()) {
    if (images.isBuilding(image) && builders.length === 0) {
      const remedy = 'wait until the session of the ended builder has expired; otherwise find who holds the lock';
      findings.warning(`image ${image}`, 'is locked for building, but no builder is registered', remedy);
    }
    const isBuilt = config.diskImages.has(image) || builders.some((builder) => builder.images?.includes(image));
    if (!isBuilt && images.builds(image).length === 0) {
      findings.info(`image ${image}`, 'has no configuration and no build; builders delete its remains');
    }
    const failure = isReported ? undefined : unresolvedFailure(images, image);
    if (failure !== undefined) {
      const { message, log, builder } = failure;
      const remedy = log === null ? 'read the log of the builder' : `read ${log} on ${builder ?? 'the builder'}`;
      const reason = `its last build failed: ${message}`;
      findings.warning(`image ${image}`, reason, `${remedy}; \`nodepool image-build ${image}\` tries again`);
    }
    for (const { provider } of images.uploads({ image })) providers.add(provider);
  }
  const isKnown = (name: string): boolean =>
    config.providers.has(name) || config.brokenProviders.has(name) || served.has(name);
  for (const provider of [...providers].filter((name) => !isKnown(name))) {
    const count = [...images.uploads({ provider })].length;
    const reason = `is neither configured here nor served, but has ${counted(count, 'upload')}`;
    const remedy =
      'start its launcher, or configure it again; only if its cloud no longer exists: nodepool erase PROVIDER';
    findings.warning(`provider ${provider}`, reason, remedy);
  }
}
