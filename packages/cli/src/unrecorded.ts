/** Reads the resources of a cloud that no record names. */

import { externalIdKey, type Call, type Instance, type Provider, type Resource } from '@nodepool/core';
import { missingTags, unrecordedResources, type Unrecorded } from '@nodepool/store';
import { CommandError, type StoreContext } from './command-context.js';
import { withStartedProvider } from './started-provider.js';

/** Time limit for one cloud, in milliseconds. Deletions of many resources take long. */
const TIMEOUT_MS = 600_000;

export interface Orphan extends Unrecorded {
  readonly provider: string;
}

/** The orphans of a provider, and resources with its tags that are not among them. */
export interface OrphanReport {
  readonly orphans: readonly Orphan[];
  /** Number of resources whose tags are incomplete, so that their owner is not certain. */
  readonly incomplete: number;
  /** Numbers of resources of other installations, by their ids. */
  readonly others: ReadonlyMap<string, number>;
}

/** Returns the key of a resource among those of its provider; a later one with the same id has another key. */
export function keyOf({ kind, externalId, tags }: Resource): string {
  const { nodepool_launch_attempt: attempt = '', nodepool_upload_id: upload = '' } = tags;
  return `${kind} ${externalIdKey(externalId)} ${attempt} ${upload}`;
}

/** Runs `work` with the started provider. Throws `CommandError` if its driver cannot be used. */
export async function withProvider<T>(
  context: StoreContext,
  name: string,
  work: (provider: Provider, call: Call) => Promise<T>,
): Promise<T> {
  const { config } = context;
  const broken = config.brokenProviders.get(name);
  if (broken !== undefined) throw new CommandError(`the driver of provider ${name} cannot be used: ${broken.reason}`);
  const section = config.providers.get(name);
  const driver = section === undefined ? undefined : config.loadedDrivers.get(section.driver);
  if (section === undefined || driver === undefined) throw new CommandError(`provider ${name} is not configured`);
  const provider = driver.getProvider(section);
  return withStartedProvider(context, provider, TIMEOUT_MS, (call) => work(provider, call));
}

/** Lists the resources of the provider and compares them with a fresh read of the records. */
export async function findOrphans(context: StoreContext, provider: Provider, call: Call): Promise<OrphanReport> {
  let report: OrphanReport = { orphans: [], incomplete: 0, others: new Map() };
  await provider.cleanupLeakedResources(
    {
      leaked: async (resources) => {
        report = await compare(context, provider.config.name, resources, call);
        return [];
      },
    },
    call,
  );
  return report;
}

/** Deletes the orphans with these keys that a new listing and a fresh read of the records confirm. */
export async function deleteOrphans(
  context: StoreContext,
  provider: Provider,
  keys: ReadonlySet<string>,
  call: Call,
): Promise<readonly Orphan[]> {
  let deleted: readonly Orphan[] = [];
  await provider.cleanupLeakedResources(
    {
      leaked: async (resources) => {
        const { orphans } = await compare(context, provider.config.name, resources, call);
        deleted = orphans.filter(({ resource }) => keys.has(keyOf(resource)));
        return deleted.map(({ resource }) => resource);
      },
    },
    call,
  );
  return deleted;
}

/** Returns the instances of orphans, by their launch attempt. */
export async function instancesOf(
  provider: Provider,
  orphans: readonly Orphan[],
  call: Call,
): Promise<readonly Instance[]> {
  const attempts = new Set(orphans.map(({ resource }) => resource.tags['nodepool_launch_attempt']));
  const listed = await provider.listNodes(call);
  return listed.filter(
    ({ tags, deleted }) =>
      !deleted && isOf(tags, provider.config.name) && attempts.has(tags['nodepool_launch_attempt']),
  );
}

function isOf(tags: Resource['tags'], provider: string): boolean {
  return tags['nodepool_provider_name'] === provider && tags['nodepool_launch_attempt'] !== undefined;
}

async function compare(
  { store }: StoreContext,
  provider: string,
  resources: readonly Resource[],
  { signal }: Call,
): Promise<OrphanReport> {
  await store.zooKeeper.sync('/', { signal });
  const installation = await store.installation.read({ signal });
  const ofProvider = resources.filter(({ tags }) => tags['nodepool_provider_name'] === provider);
  const others = new Map<string, number>();
  const ours: Resource[] = [];
  for (const resource of ofProvider) {
    const { nodepool_installation: of = installation } = resource.tags;
    if (of === installation) ours.push(resource);
    else others.set(of, (others.get(of) ?? 0) + 1);
  }
  const found = await unrecordedResources(store, provider, ours, { signal });
  const orphans = found.filter(({ resource }) => missingTags(resource).length === 0);
  return {
    orphans: orphans.map((each) => ({ ...each, provider })),
    incomplete: found.length - orphans.length,
    others,
  };
}
