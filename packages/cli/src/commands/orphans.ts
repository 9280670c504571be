/** `nodepool orphans ACTION [PROVIDER]`: cloud resources with our tags and no record; suspension of their deletion. */

import type { ExternalId, Instance, NodeData, NodeState } from '@nodepool/core';
import { deadlineSignal, externalIdKey, LAUNCHING_STATES, printable, TimerQueue } from '@nodepool/core';
import { createRecordList, type ListColumn, type NodeHandle, type Store } from '@nodepool/store';
import { CommandError, UsageError, type StoreContext } from '../command-context.js';
import { confirm } from '../confirm.js';
import { checkConfigured, checkProvider } from '../image-names.js';
import { isGone } from '../lock-node.js';
import { printSelected, type ListOptions } from '../lists/list-command.js';
import { deleteOrphans, findOrphans, instancesOf, keyOf, withProvider, type Orphan } from '../unrecorded.js';

export type OrphanAction = 'list' | 'adopt' | 'delete' | 'suspend' | 'confirm';

export interface OrphanOptions extends ListOptions {
  /** Limits `adopt` and `delete` to the resources with these external ids. */
  readonly id?: readonly string[];
  /** True to ask for no confirmation. */
  readonly force: boolean;
  /** True to retire ready nodes with `suspend`. */
  readonly retireReady: boolean;
}

/** Maximum number of names in a question. */
const NAMED = 10;

const COLUMNS: readonly ListColumn<Orphan>[] = [
  { field: 'provider', header: 'Provider', value: ({ provider }) => provider },
  { field: 'type', header: 'Type', value: ({ resource }) => resource.kind },
  { field: 'id', header: 'ID', value: ({ resource }) => resource.externalId },
  { field: 'name', header: 'Name', value: ({ resource }) => resource.name },
  { field: 'node', header: 'Node', value: ({ resource }) => resource.tags['nodepool_node_id'] ?? null },
  { field: 'image', header: 'Image', value: ({ resource }) => resource.tags['nodepool_image_name'] ?? null },
  { field: 'reason', header: 'Reason', value: ({ because }) => because },
  {
    field: 'tags',
    header: 'Tags',
    detail: true,
    value: ({ resource }) => Object.entries(resource.tags).map(([name, value]) => `${name}=${value}`),
  },
];

/** Rejects with `CommandError` if the user does not confirm or a cloud does not answer, and with `UsageError`. */
export async function orphans(
  context: StoreContext,
  action: OrphanAction,
  provider: string | undefined,
  options: OrphanOptions,
): Promise<void> {
  checkOptions(action, options);
  if (provider !== undefined) checkProvider(context, provider);
  switch (action) {
    case 'list':
      return list(context, provider, options);
    case 'adopt':
      return adopt(context, required(action, provider), options);
    case 'delete':
      return remove(context, required(action, provider), options);
    case 'suspend':
      return suspend(context, provider, options);
    case 'confirm':
      return resume(context, provider, options);
  }
}

/** Throws `UsageError` for an option that the action would ignore. */
function checkOptions(action: OrphanAction, { id, force, retireReady }: OrphanOptions): void {
  const given: readonly (readonly [string, boolean, readonly OrphanAction[]])[] = [
    ['--id', id !== undefined, ['adopt', 'delete']],
    ['--force', force, ['delete', 'confirm']],
    ['--retire-ready', retireReady, ['suspend']],
  ];
  for (const [option, isGiven, actions] of given) {
    if (isGiven && !actions.includes(action)) {
      throw new UsageError(
        `${option} has no effect on \`nodepool orphans ${action}\`; it is for ${actions.join(' and ')}`,
      );
    }
  }
}

async function list(context: StoreContext, only: string | undefined, options: ListOptions): Promise<void> {
  const { config, out } = context;
  if (only !== undefined) checkConfigured(context, only);
  const wanted = [...config.providers.keys(), ...config.brokenProviders.keys()].filter(
    (name) => name === (only ?? name),
  );
  const failures: string[] = [];
  const found = await Promise.all(
    [...new Set(wanted)].map(async (name): Promise<readonly Orphan[]> => {
      try {
        const report = await withProvider(context, name, (provider, call) => findOrphans(context, provider, call));
        if (report.incomplete > 0) {
          out.note(
            `provider ${name} has ${report.incomplete} more resources without a record, whose tags are incomplete`,
          );
        }
        for (const [installation, count] of report.others) {
          out.note(`provider ${name} has ${count} resources of installation ${installation}, which is not this one`);
        }
        return report.orphans;
      } catch (error) {
        context.interrupted.throwIfAborted();
        failures.push(`provider ${name}: ${error instanceof Error ? error.message : String(error)}`);
        return [];
      }
    }),
  );
  const all = createRecordList(COLUMNS, 'all', found.flat());
  printSelected(out, all, { name: ['provider', 'id'], filters: { provider: 'provider' } }, options);
  if (failures.length > 0) throw new CommandError(`the list is not complete:\n  ${failures.join('\n  ')}`);
}

/** Creates a held node for each instance, so that its deletion is up to the operator and `max-hold-age`. */
async function adopt(context: StoreContext, name: string, options: OrphanOptions): Promise<void> {
  const { store, out } = context;
  const call = { signal: context.interrupted };
  const instances = await withProvider(context, name, async (provider, limits) => {
    const { orphans: found } = await findOrphans(context, provider, limits);
    const chosen = await instancesOf(provider, found, limits);
    return chosen.filter(({ externalId }) => isChosen(externalId, options));
  });
  const missing = idsWithout(instances, options);
  if (instances.length === 0 && missing.length === 0) {
    out.note(`provider ${name} has no instance without a record`);
    return;
  }
  const since = context.clock.now() / 1000;
  let adopted = 0;
  for (const instance of instances) {
    // Another process may adopt it at the same time.
    const plan = (): readonly NodeData[] =>
      isRecorded(store, name, instance) ? [] : [adoptedNode(instance, name, since)];
    const [id] = await store.nodes.createOnce(name, plan, call);
    if (id === undefined) out.note(`instance ${externalIdText(instance.externalId)} has just got a record`);
    else out.print(id);
    adopted += id === undefined ? 0 : 1;
  }
  out.note(`${adopted} instances of provider ${name} are held; \`nodepool delete ID\` deletes them`);
  refuseMissing(missing, `provider ${name} has no instances without a record that have these ids`);
}

function isRecorded(store: Store, provider: string, { externalId }: Instance): boolean {
  const key = externalIdKey(externalId);
  return [...store.nodes.ofProvider(provider)].some(
    ({ node }) => node.external_id !== null && externalIdKey(node.external_id) === key,
  );
}

async function remove(context: StoreContext, name: string, options: OrphanOptions): Promise<void> {
  const { out } = context;
  const chosen = await withProvider(context, name, async (provider, call) => {
    const { orphans: found } = await findOrphans(context, provider, call);
    return found.filter(({ resource }) => isChosen(resource.externalId, options));
  });
  const missing = idsWithout(
    chosen.map(({ resource }) => resource),
    options,
  );
  const refusal = `provider ${name} has no resources without a record that have these ids`;
  if (chosen.length === 0) {
    refuseMissing(missing, refusal);
    out.note(`provider ${name} has no resource without a record`);
    return;
  }
  const names = chosen.slice(0, NAMED).map(({ resource }) => `  ${resource.kind} ${resource.name}`);
  if (names.length < chosen.length) names.push(`  and ${chosen.length - names.length} more`);
  const what = `${chosen.length} resources of provider ${name}`;
  const effect = `${what} will be deleted in the cloud, even if a job uses them:\n${names.join('\n')}`;
  await confirm(context, { effect, expected: `${name} ${chosen.length}`, refusal: 'nothing was deleted' }, options);
  const keys = new Set(chosen.map(({ resource }) => keyOf(resource)));
  const deleted = await withProvider(context, name, (provider, call) => deleteOrphans(context, provider, keys, call));
  out.note(`${deleted.length} resources of provider ${name} are deleted`);
  const left = chosen.length - deleted.length;
  if (left > 0) out.note(`${left} were not deleted: they no longer exist, or have a record by now`);
  refuseMissing(missing, refusal);
}

/** Time (ms) after which no session of a restored state exists: ZooKeeper's usual maximum is 40 s. */
const LOCKS_EXPIRE_MS = 60_000;

/** States of nodes that, in an older state of ZooKeeper, may long be in use. */
const RETIRED: readonly NodeState[] = ['ready', ...LAUNCHING_STATES];

/** Suspends deletions, e.g. before launchers start with a restored state. */
async function suspend(context: StoreContext, only: string | undefined, { retireReady }: OrphanOptions): Promise<void> {
  const { store, out, interrupted: signal } = context;
  await store.suspensions.suspend(only ?? null, 'an operator has suspended them', { signal });
  out.note('deletions of resources without a record are suspended until `nodepool orphans confirm`');
  if (!retireReady) return;
  const locked: string[] = [];
  const retired = { ready: 0, launching: 0 };
  const retire = async (handle: NodeHandle): Promise<void> => {
    const { state } = handle.node;
    if (!RETIRED.includes(state)) return handle.release();
    const isReady = state === 'ready';
    await handle.release({ state: isReady ? 'used' : 'aborted', allocated_to: null }, { signal });
    retired[isReady ? 'ready' : 'launching'] += 1;
  };
  for (const { id, node } of RETIRED.flatMap((state) => [...store.nodes.inState(state)])) {
    if (only !== undefined && node.provider !== only) continue;
    const handle = await store.nodes.tryLock(id, { signal });
    if (handle === undefined) locked.push(id);
    else await retire(handle);
  }
  const leased = await ownersOf(context, locked);
  const waiting = locked.filter((id) => !leased.has(id));
  const left = waiting.length === 0 ? [] : await retireUnlocked(context, waiting, retire);
  for (const id of leased.keys()) {
    // The lease may have ended in the meantime.
    const entry = await store.nodes.read(id, { signal });
    const isLeft = entry !== undefined && RETIRED.includes(entry.node.state);
    const handle = isLeft && !entry.locked ? await store.nodes.tryLock(id, { signal }) : undefined;
    if (handle !== undefined) await retire(handle);
    if (!isLeft || handle !== undefined) leased.delete(id);
  }
  out.note(
    `${retired.ready} ready nodes and ${retired.launching} launches are retired, so that launchers replace them`,
  );
  const kept = [...leased].map(([id, owner]) => `${id} (${printable(owner)})`);
  const reasons = [
    ...(left.length === 0 ? [] : [`locked by running programs, and are not retired: ${left.join(', ')}`]),
    ...(kept.length === 0 ? [] : [`leased durably, and are not retired: ${kept.join(', ')}`]),
  ];
  if (reasons.length > 0) throw new CommandError(`these nodes are ${reasons.join('; these are ')}`);
}

/**
 * Resolves with the owners of the nodes whose lock belongs to a durable lease, which does not end with a session.
 * A lock that cannot be read counts as that of a session.
 */
async function ownersOf(
  { store, log, interrupted: signal }: StoreContext,
  ids: readonly string[],
): Promise<Map<string, string>> {
  const owners = new Map<string, string>();
  const find = async (id: string): Promise<void> => {
    try {
      const holder = await store.nodes.holder(id, { signal });
      if (holder?.persistent === true) owners.set(id, holder.identifier);
    } catch (error) {
      signal.throwIfAborted();
      log.debug('The holder of a lock cannot be read', { node_id: id, error });
    }
  };
  await Promise.all(ids.map(find));
  return owners;
}

/** Retires nodes once they are unlocked. Resolves with the ids of those that remain locked. */
async function retireUnlocked(
  { store, out, clock, interrupted }: StoreContext,
  locked: readonly string[],
  retire: (handle: NodeHandle) => Promise<void>,
): Promise<readonly string[]> {
  out.note(
    `${locked.length} nodes are locked; waiting up to ${LOCKS_EXPIRE_MS / 1000} s, because the locks of a restored ` +
      'state end with the sessions of that state',
  );
  const limited = deadlineSignal({
    timers: new TimerQueue(clock),
    signal: interrupted,
    deadline: clock.monotonic() + LOCKS_EXPIRE_MS,
    onDeadline: () => new CommandError('the nodes are still locked'),
  });
  const { signal } = limited;
  const isLeft = async (id: string): Promise<boolean> => {
    try {
      await retire(await store.nodes.lock(id, { signal }));
      return false;
    } catch (error) {
      interrupted.throwIfAborted();
      if (signal.aborted) return true;
      if (isGone(error)) return false;
      throw error;
    }
  };
  try {
    const left = await Promise.all(locked.map(isLeft));
    return locked.filter((_, index) => left[index]);
  } finally {
    limited.unlink();
  }
}

async function resume(context: StoreContext, only: string | undefined, options: OrphanOptions): Promise<void> {
  const { store, out, interrupted: signal } = context;
  const all = store.suspensions.all();
  if (only !== undefined && all.some(({ provider }) => provider === null)) {
    throw new CommandError('the deletions of all providers are suspended: `nodepool orphans confirm` ends that');
  }
  const suspensions = all.filter(({ provider }) => only === undefined || provider === only);
  if (suspensions.length === 0) {
    out.note('no deletions are suspended');
    return;
  }
  const reasons = suspensions.map(({ provider, reason }) => `  ${provider ?? 'all providers'}: ${reason}`);
  const effect = `Launchers and builders will delete what has no record again. They stopped because of:\n${reasons.join('\n')}`;
  await confirm(context, { effect, expected: 'confirm', refusal: 'the deletions remain suspended' }, options);
  for (const { provider } of suspensions) await store.suspensions.resume(provider, { signal });
  out.note('deletions of resources without a record continue; if there are many, they are suspended again');
}

function required(action: OrphanAction, provider: string | undefined): string {
  if (provider !== undefined) return provider;
  throw new UsageError(`nodepool orphans ${action} needs the name of a provider`);
}

function isChosen(externalId: ExternalId, { id }: OrphanOptions): boolean {
  return id === undefined || id.includes(externalIdText(externalId));
}

function externalIdText(externalId: ExternalId): string {
  return typeof externalId === 'string' ? externalId : externalIdKey(externalId);
}

/** Returns the ids of the option that none of the resources has. */
function idsWithout(
  resources: readonly { readonly externalId: ExternalId }[],
  { id = [] }: OrphanOptions,
): readonly string[] {
  const found = new Set(resources.map(({ externalId }) => externalIdText(externalId)));
  return id.filter((each) => !found.has(each));
}

/** Throws `CommandError` for ids that were asked for and do not exist. */
function refuseMissing(ids: readonly string[], what: string): void {
  if (ids.length > 0) throw new CommandError(`${what}: ${ids.join(', ')}; see \`nodepool orphans list\``);
}

/** Returns the record of an instance that is held for the operator. */
function adoptedNode(instance: Instance, provider: string, now: number): NodeData {
  const { tags } = instance;
  const attempt = tags['nodepool_launch_attempt'];
  return {
    state: 'hold',
    state_time: now,
    created_time: now,
    provider,
    pool: tags['nodepool_pool_name'] ?? null,
    launcher: null,
    type: [],
    allocated_to: null,
    external_id: instance.externalId,
    hostname: instance.hostname ?? null,
    cloud: instance.cloud ?? null,
    region: instance.region ?? null,
    az: instance.az ?? null,
    host_id: instance.hostId ?? null,
    interface_ip: instance.interfaceIp ?? null,
    public_ipv4: instance.publicIpv4 ?? null,
    private_ipv4: instance.privateIpv4 ?? null,
    public_ipv6: instance.publicIpv6 ?? null,
    connection_type: null,
    connection_port: null,
    username: null,
    python_path: null,
    shell_type: null,
    host_keys: [],
    image_id: null,
    attributes: null,
    resources: { instances: 1, ...instance.resources },
    slot: instance.slot ?? null,
    driver_data: instance.driverData ?? null,
    tenant_name: null,
    requestor: null,
    comment: `adopted; it was node ${tags['nodepool_node_id'] ?? ''}`,
    hold_job: null,
    hold_expiration: null,
    user_data: null,
    // The attempt identifies the instance, whose tags name the node of its launch.
    progress: attempt === undefined ? null : { kind: 'deletion', attempt, number: 1, started: now, machine: null },
    machine_type: null,
    interruption: null,
  };
}
