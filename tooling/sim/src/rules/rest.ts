/** Rules for the end of a run, after all faults: liveness 1 to 6, and the delays of safety 12. */

import { MAX_WAIT_MS, META, wantedReady } from '../site.js';
import type { World } from '../world.js';
import { waitingUploads } from './images.js';
import { isForeign } from './instances.js';
import { isOfMachine, slotOf } from './machines.js';
import { BACKING_OWNER, hasSlotInUse } from './slots.js';
import { inUse, isAvailable } from './supply.js';
import { textOf } from './values.js';

/** An object that has not reached its final state. */
export interface UnfinishedWork {
  readonly rule: string;
  /** Identity of the object, stable while it is unfinished. */
  readonly subject: string;
  readonly what: string;
}

/** Time limit of each rule for an unfinished object (ms). */
export const BOUNDS: Readonly<Record<string, number>> = {
  // The longest wait, and the time for a launch that began before its end.
  L1: MAX_WAIT_MS + 300_000,
  // Two rounds of cleanup, each after one that hung, and a deletion whose call hung.
  L2: 900_000,
  // The session timeout, plus the rounds for which an orphaned launch is left alone.
  L3: 480_000,
  // The longest retry delay of a start.
  L4: 120_000,
  L5: 600_000,
  // Two attempts to remove the rest of a lock.
  L6: 180_000,
  // The longest wait between checks of a machine, and the rounds for which the launch of a node's user is left alone.
  M2: 900_000,
  // The grace time, the session timeout, and the rounds for which the launch of a node's user is left alone.
  B4: 600_000,
  // Two failed tests, whose launches are repeated, and the end of a session before each of them.
  I5: 1_200_000,
  // Time in which one healthy provider can serve everything that waits for it.
  S12: 600_000,
};

/** The lock directory of a request, or a contender in it. */
const REQUEST_LOCK = /^\/nodepool\/requests-lock\/([^/]+)(?:\/(.*))?$/;

/** Yields every unfinished object, starting with those that are cheapest to find. */
export function* unfinished(world: World): Generator<UnfinishedWork> {
  yield* requests(world);
  yield* nodes(world);
  yield* instances(world);
  yield* supply(world);
  yield* losses(world);
  yield* pools(world);
  yield* locks(world);
  yield* slots(world);
  yield* tests(world);
}

/** Images 5: launch tests continue. */
function* tests({ checker }: World): Generator<UnfinishedWork> {
  for (const path of waitingUploads(checker.observed.uploads))
    yield { rule: 'I5', subject: path, what: `upload ${path} still waits for its launch test` };
}

/** With a permanently defective driver, yields only unfinished objects that are unrelated to it. */
export function* unfinishedDespite(world: World, healthy: string): Generator<UnfinishedWork> {
  for (const { rule, subject, what } of requests(world))
    if (rule === 'L1') yield { rule: 'S12', subject, what: `${what}, though ${healthy} could serve it` };
}

function* requests({ checker, requestors }: World): Generator<UnfinishedWork> {
  const wanted = new Set(requestors.map(({ request }) => request));
  for (const { id, data, holder } of checker.observed.requests.values()) {
    const state = textOf(data['state']);
    const isBacking = data['requestor'] === BACKING_OWNER;
    // An answered request whose requestor never knew of it is ignored.
    if (!isBacking && !wanted.has(id) && (state === 'fulfilled' || state === 'failed')) continue;
    const subject = `request ${id}`;
    if (isBacking) {
      yield { rule: 'B4', subject, what: `the backing request ${id} is still ${state}` };
      continue;
    }
    if (state === 'pending' && holder === undefined)
      yield { rule: 'L3', subject, what: `no launcher accepts the lost request ${id}` };
    else yield { rule: 'L1', subject, what: `request ${id} is still ${state}` };
  }
  if (requestors.some(({ done }) => !done))
    yield { rule: 'L1', subject: 'requestors', what: 'a requestor is still at it' };
}

function* nodes({ checker, launchers }: World): Generator<UnfinishedWork> {
  const living = new Set(['requestor', ...launchers.filter(({ alive }) => alive).map(({ name }) => name)]);
  for (const { id, data, holder } of checker.observed.nodes.values()) {
    const state = textOf(data['state']);
    const subject = `node ${id} ${state} ${holder ?? ''}`;
    const request = data['allocated_to'];
    if (holder === BACKING_OWNER) {
      const what = `the backing node ${id}, which has no nodes, is still ${state}`;
      if (!hasSlotInUse(id, checker.observed)) yield { rule: 'B4', subject, what };
    } else if (state === 'deleting') yield { rule: 'L2', subject, what: `node ${id} is still being deleted` };
    else if (holder !== undefined) {
      const what = `node ${id} is still ${state} and locked by ${holder}`;
      yield { rule: living.has(holder) ? 'L1' : 'L3', subject, what };
    } else if (state === 'hold') yield { rule: 'L1', subject, what: `node ${id} is still held` };
    else if (state !== 'ready') yield { rule: 'L2', subject, what: `node ${id} is still ${state}` };
    else if (typeof request === 'string' && !checker.observed.requests.has(request))
      yield { rule: 'L3', subject, what: `node ${id} is still allocated to the request ${request}, which is gone` };
  }
}

function* instances({ checker, cloud }: World): Generator<UnfinishedWork> {
  for (const { id, tags } of cloud.existingInstances()) {
    if (isForeign(tags)) continue;
    const node = checker.observed.nodes.get(tags['nodepool_node_id'] ?? '');
    if (node?.data['external_id'] !== id)
      yield { rule: 'L2', subject: `instance ${id}`, what: `instance ${id} is leaked` };
  }
}

/** A ready node without an instance is replaced. */
function* losses({ checker, cloud }: World): Generator<UnfinishedWork> {
  const existing = new Map(cloud.existingInstances().map((each) => [each.id, each]));
  for (const node of checker.observed.nodes.values()) {
    const { id, data } = node;
    const instance = data['external_id'];
    if (data['state'] !== 'ready' || typeof instance !== 'string' || isOfMachine(node)) continue;
    if (data['provider'] === META) continue;
    const state = existing.get(instance)?.state;
    if (state !== 'running')
      yield {
        rule: 'L2',
        subject: `node ${id}`,
        what: `node ${id} is ready, and its instance is ${state ?? 'missing'}`,
      };
  }
}

/** Every running launcher serves its configured pools. */
function* pools({ checker, launchers }: World): Generator<UnfinishedWork> {
  const registered = checker.observed.pools();
  for (const { alive, name: hostname, site } of launchers) {
    if (!alive) continue;
    for (const provider of site.providers) {
      for (const { name } of provider.pools) {
        const subject = `${hostname} ${provider.name}/${name}`;
        const found = registered.filter(
          (pool) =>
            pool['hostname'] === hostname &&
            pool['provider_name'] === provider.name &&
            pool['name'] === name &&
            pool['state'] === 'running',
        ).length;
        if (found !== 1)
          yield {
            rule: 'L4',
            subject,
            what: `pool ${provider.name}/${name} of ${hostname} is registered and running ${found} times`,
          };
      }
    }
  }
}

/**
 * Locks of answered or deleted requests are obsolete. The locks of other requests and of nodes are reported with those.
 */
function* locks({ server, checker }: World): Generator<UnfinishedWork> {
  for (const [path, { data }] of server.dump()) {
    const [, id, contender] = REQUEST_LOCK.exec(path) ?? [];
    if (id === undefined) continue;
    const state = textOf(checker.observed.requests.get(id)?.data['state'] ?? 'gone');
    const is = contender === undefined ? 'there' : `contended for by ${new TextDecoder().decode(data)}`;
    if (contender === undefined ? state === 'gone' : state !== 'requested' && state !== 'pending')
      yield { rule: 'L6', subject: path, what: `the lock of the request ${id}, which is ${state}, is still ${is}` };
  }
}

/** Machines 2: every slot of a machine has a node. The nodes that are not ready are reported with the others. */
function* slots({ checker, launchers }: World): Generator<UnfinishedWork> {
  const filled = new Set([...checker.observed.nodes.values()].filter(isOfMachine).map(slotOf));
  const sites = launchers.filter(({ alive }) => alive).map(({ site }) => site);
  for (const pool of sites.flatMap(({ providers }) => providers).flatMap(({ pools: each }) => each)) {
    for (const { name, slots: count } of pool.machines ?? []) {
      for (let index = 0; index < count; index += 1) {
        const subject = `slot ${index} of ${name}`;
        if (!filled.has(subject)) yield { rule: 'M2', subject, what: `${subject} has no node` };
      }
    }
  }
}

/** As many nodes are ready as `min-ready` and `spare` ask for, if there is capacity. */
function* supply({ checker, launchers }: World): Generator<UnfinishedWork> {
  const sites = launchers.filter(({ alive }) => alive).map(({ site }) => site);
  const records = [...checker.observed.nodes.values()];
  const hasRoom = (label: string): boolean =>
    sites.some(({ providers }) =>
      providers.some(({ name: provider, pools: each }) =>
        each.some(({ name, labels, maxServers }) => {
          const used = records.filter(({ data }) => data['provider'] === provider && data['pool'] === name).length;
          return labels.includes(label) && used < maxServers;
        }),
      ),
    );
  for (const label of new Set(sites.flatMap(({ minReady, spare }) => Object.keys({ ...minReady, ...spare })))) {
    const wanted = Math.max(...sites.map((site) => wantedReady(site, label, inUse(checker, label))));
    const ready = records.filter((node) => isAvailable(node, label)).length;
    if (ready < wanted && hasRoom(label))
      yield { rule: 'L5', subject: `label ${label}`, what: `${ready} nodes of ${label} are ready, of ${wanted}` };
  }
}
