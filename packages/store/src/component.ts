/**
 * The component registry, `/nodepool/components/<kind>/<host><sequence>`: the running components. Field names are those
 * of the JSON.
 */

export const COMPONENT_KINDS = ['launcher', 'pool', 'builder'] as const;
export type ComponentKind = (typeof COMPONENT_KINDS)[number];
export type ComponentState = 'initializing' | 'running' | 'paused' | 'stopped';

export interface ComponentData {
  readonly hostname: string;
  readonly kind: ComponentKind;
  readonly state: ComponentState;
  readonly version: string;
  readonly model_api: number;
  /**
   * Versions of the drivers that a launcher or builder uses, by driver name. An extension; other programs ignore it.
   */
  readonly drivers?: Readonly<Record<string, string>>;
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
}
