/** The acme driver on the state-machine framework. Tests inject defects with `changes`. */

import {
  loadCommonProvider,
  providerSchema,
  QuotaInformation,
  silentLogger,
  stateMachineDriver,
  stringAt,
  stringsAt,
  type Adapter,
  type Call,
  type Driver,
  type Instance,
  type JsonObject,
  type LabelConfig,
  type ListingDeadlineOptions,
  type ProviderConfig,
  type ProviderConfigContext,
  type ProviderContext,
  type ProviderDefaults,
} from '@nodepool/core';
import { acmeClient, explain, type AcmeClient, type Explain } from './acme-client.js';
import { SIZES, type AcmeCloud, type ListedServer } from './acme-cloud.js';
import { acmeImages } from './acme-images.js';
import { AcmeCreate, AcmeDelete, idOf } from './acme-machines.js';

/** Differences from the correct driver. */
export interface Changes {
  readonly explain?: Explain;
  readonly client?: (client: AcmeClient, cloud: AcmeCloud, context: ProviderContext) => Partial<AcmeClient>;
  readonly adapter?: (adapter: Adapter, parts: Parts) => Partial<Adapter>;
  readonly driver?: (driver: Driver) => Driver;
  readonly listingDeadline?: ListingDeadlineOptions;
}

/** Objects that the adapters receive. */
export interface Parts {
  readonly cloud: AcmeCloud;
  readonly client: () => AcmeClient;
  readonly context: () => ProviderContext;
}

const defaults: ProviderDefaults = { bootTimeoutSeconds: 60, rateUnit: 'calls-per-second' };

export const acmeSchema: JsonObject = providerSchema({
  defaults,
  label: {
    properties: {
      size: { type: 'string', description: 'Size of a node: `s` or `m`.' },
      sizes: { type: 'array', items: { type: 'string' }, description: 'Alternatives to `size`.' },
    },
  },
  diskImage: { properties: { meta: { type: 'object', description: 'Properties in the cloud.' } } },
  cloudImage: {},
});

export function loadAcme(section: JsonObject, context: ProviderConfigContext): ProviderConfig {
  return loadCommonProvider<LabelConfig, ProviderConfig['pools'] extends ReadonlyMap<string, infer P> ? P : never>(
    section,
    context,
    {
      defaults,
      imageFormat: 'raw',
      loadPool: (pool) => pool,
      loadLabel: (label, source) => {
        const size = stringAt(source.section, 'size') ?? 's';
        if (!(size in SIZES)) context.problem([...source.path, 'size'], { expected: '`s` or `m`' });
        return { ...label, machineTypes: stringsAt(source.section, 'sizes') };
      },
    },
  );
}

export function acmeAdapter(cloud: AcmeCloud, changes: Changes = {}): Adapter {
  let context: ProviderContext | undefined;
  let client: AcmeClient | undefined;
  const parts: Parts = {
    cloud,
    client: () => client!,
    context: () => context!,
  };
  const ownCall = (): Call => ({
    signal: new AbortController().signal,
    deadline: cloud.clock.monotonic() + 30_000,
    log: silentLogger,
  });
  const adapter: Adapter = {
    images: acmeImages(parts.client, cloud.clock),
    async start(given) {
      context = given;
      const right = acmeClient(cloud, given, changes.explain ?? explain);
      client = { ...right, ...changes.client?.(right, cloud, given) };
      await client.describe(ownCall());
    },
    getCreateStateMachine: (request, saved) => new AcmeCreate(client!, request, saved, changes.listingDeadline ?? {}),
    getDeleteStateMachine: (externalId) => new AcmeDelete(client!, externalId),
    async listInstances(call) {
      const items: ListedServer[] = [];
      for (let from: number | null = 0; from !== null;) {
        const page: { readonly items: readonly ListedServer[]; readonly next: number | null } = await client!.page(
          from,
          call,
        );
        items.push(...page.items);
        from = page.next;
      }
      return items.map(asInstance);
    },
    async listResources(call) {
      const instances = await adapter.listInstances(call);
      const ours = instances.filter(({ tags }) => 'nodepool_provider_name' in tags);
      return ours.map(({ externalId, tags }) => ({ kind: 'instance', externalId, name: idOf(externalId), tags }));
    },
    deleteResource: (resource, call) => client!.remove(idOf(resource.externalId), call),
    async getQuotaLimits(call) {
      return QuotaInformation.limit({ instances: (await client!.describe(call)).limit });
    },
    getQuotaForLabel: async ({ machineTypes }, _call, machineType) => quotaOf(machineType ?? machineTypes?.[0]),
    getAvailabilityZones: async (_pool, call) => (await client!.describe(call)).zones,
  };
  return { ...adapter, ...changes.adapter?.(adapter, parts) };
}

/** Returns the resources of a node of the size. */
export function quotaOf(size = 's'): QuotaInformation {
  return QuotaInformation.use({ instances: 1, cores: SIZES[size] ?? 0 });
}

export function acmeDriver(cloud: AcmeCloud, changes: Changes = {}): Driver {
  const driver = stateMachineDriver<LabelConfig, ProviderConfig>({
    name: 'acme',
    schema: acmeSchema,
    getProviderConfig: loadAcme,
    getAdapter: () => acmeAdapter(cloud, changes),
  });
  return changes.driver?.(driver) ?? driver;
}

export function asInstance({ id, copyOf, tags, zone, cores, ready, failed }: ListedServer): Instance {
  return {
    externalId: id,
    // A copy belongs to the person who created it.
    tags: copyOf === undefined ? tags : {},
    ready,
    deleted: false,
    failed: failed ? 'a broken disk' : undefined,
    interfaceIp: ready ? '192.0.2.1' : undefined,
    az: zone,
    resources: { instances: 1, cores },
  };
}
