/** The registry of running components, `/nodepool/components/<kind>/<host><sequence>`. Fields are those of the JSON. */

export const COMPONENT_KINDS = ['launcher', 'pool', 'builder'] as const;
export type ComponentKind = (typeof COMPONENT_KINDS)[number];
export type ComponentState = 'initializing' | 'running' | 'paused' | 'stopped';

export interface ComponentData {
  readonly hostname: string;
  readonly kind: ComponentKind;
  readonly state: ComponentState;
  readonly version: string;
  readonly model_api: number;
  /** Versions of a launcher's or builder's drivers, by driver name. An extension; other programs ignore it. */
  readonly drivers?: Readonly<Record<string, string>>;
  /** The web endpoint of the process; absent if it has none. An extension; other programs ignore it. */
  readonly webapp?: WebEndpoint;
  /** Fingerprints of a launcher's configuration and of each provider in it. An extension; others ignore it. */
  readonly configuration?: ConfigurationFacts;
  /** Reasons why the launcher cannot serve some of its providers, by provider. An extension; others ignore it. */
  readonly unserved?: Readonly<Record<string, string>>;
  /** Forecasts of the launcher that is elected for a label, by label. An extension; other programs ignore it. */
  readonly forecasts?: Readonly<Record<string, DemandForecast>>;
  /** Names of the disk images that the builder builds. An extension; other programs ignore it. */
  readonly images?: readonly string[];
}

/** Numbers of ready nodes for quarters of an hour. */
export interface DemandForecast {
  /** Unix seconds of the start of the first quarter. */
  readonly from: number;
  readonly counts: readonly number[];
  /** Seconds before its quarter from which on a number is used. */
  readonly lead: number;
}

/** Fingerprints, which are equal for equal configurations. */
export interface ConfigurationFacts {
  /** Fingerprint of all that launchers have in common if they serve the same providers. */
  readonly fingerprint: string;
  readonly providers: Readonly<Record<string, string>>;
  /** Unix seconds since when the configuration is in force. */
  readonly since: number;
}

/** An address for HTTP. */
export interface WebEndpoint {
  /** Fully qualified host name, or the address if the endpoint listens on one address only. */
  readonly host: string;
  readonly port: number;
}

/** One provider pool served by a launcher. Requestors learn the existing labels from it. */
export interface PoolComponentData extends ComponentData {
  readonly kind: 'pool';
  /** `<fqdn>-PoolWorker.<provider>-<pool>-<uuid hex>`; the value that is added to `declined_by`. */
  readonly id: string;
  readonly name: string;
  readonly provider_name: string;
  readonly supported_labels: readonly string[];
  /** Pools with lower values are served first. */
  readonly priority: number;
  readonly paused: boolean;
  /** Labels that no offer of the pool can serve at the moment. Other implementations ignore it. */
  readonly paused_labels?: readonly string[];
  /** Limit of the pool's nodes; undefined if there is none. An extension; other programs ignore it. */
  readonly max_servers?: number;
  /** Machines of the pool that this launcher cannot use at the moment. An extension; other programs ignore it. */
  readonly out_of_service?: readonly MachineOutage[];
  /**
   * Reasons why the pool cannot serve some of its labels, e.g. a missing image; not those of `trouble`. An extension;
   * other programs ignore it.
   */
  readonly unready_labels?: Readonly<Record<string, string>>;
  /** Trouble of the pool's provider that this launcher sees. An extension; other programs ignore it. */
  readonly trouble?: PoolTrouble | null;
}

export const POOL_TROUBLES = ['degraded', 'unavailable', 'unreachable', 'misconfigured'] as const;

/** Trouble of a provider. */
export interface PoolTrouble {
  readonly state: (typeof POOL_TROUBLES)[number];
  /** Kind of the trouble, e.g. `auth`. */
  readonly cause?: string;
  readonly reason: string;
  /** Unix seconds. */
  readonly since: number;
}

/** A static machine that cannot be used at the moment. */
export interface MachineOutage {
  /** Name, port and user, e.g. `rack1.example.com:22 (user zuul)`. */
  readonly machine: string;
  readonly labels: readonly string[];
  /** Number of nodes that the machine provides. */
  readonly slots: number;
  readonly reason: string;
  /** Unix seconds. */
  readonly since: number;
}

/** Returns the outage as part of a sentence. */
export function describeOutage({ machine, reason }: Pick<MachineOutage, 'machine' | 'reason'>): string {
  return `machine ${machine} is out of service: ${reason}`;
}

/** Returns true if it is this pool of the configuration, such as that of a node, on any launcher. */
export function isPoolAt(
  { provider_name: provider, name }: PoolComponentData,
  place: { readonly provider: string | null; readonly pool: string | null },
): boolean {
  return provider === place.provider && name === place.pool;
}

/** Returns true if the launcher of the pool cannot use its provider. */
export function isOutOfService({ trouble }: { readonly trouble?: PoolTrouble | null | undefined }): boolean {
  return trouble !== undefined && trouble !== null && trouble.state !== 'degraded';
}

/** Returned by `describePool` for a pool that names no obstacle. */
export const SERVES_REQUESTS = 'serves requests';

/** Returns what a pool's record says about requests for the labels, as a predicate; without labels, about all. */
export function describePool(
  { state, paused, paused_labels: closed = [], trouble, unready_labels: reasons = {} }: PoolComponentData,
  labels: readonly string[] = [],
): string {
  // A pool whose cloud does not answer remains `initializing`.
  if (state !== 'running' && !isOutOfService({ trouble })) return `is ${state}`;
  const unready = labels.find((label) => Object.hasOwn(reasons, label));
  if (unready !== undefined) return `cannot serve it: ${reasons[unready] ?? ''}`;
  const isClosed = labels.some((label) => closed.includes(label));
  const isTouched = labels.length === 0 || isClosed || paused;
  if (trouble !== undefined && trouble !== null && (trouble.state !== 'degraded' || isTouched)) {
    const effect = trouble.state === 'degraded' ? 'launches not all of its nodes' : 'launches no nodes';
    return `${effect}; its provider is ${trouble.state}: ${trouble.reason}`;
  }
  if (isClosed) return 'cannot launch it at the moment';
  return paused ? 'lets requests wait for capacity or a limit, or is drained' : SERVES_REQUESTS;
}
