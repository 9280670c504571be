/** Objects that all state machines of a provider share: the client, cached lookups, and deduplicated reads. */

import { CachedRead, type Call, type Clock, type Logger, type MakeCall, type RandomSource } from '@nodepool/core';
import type { Client } from './client/client.js';
import type { FloatingIp, Network, Port } from './client/network.js';
import { FreshRead } from './client/shared-read.js';
import { usesVolumes, type OpenStackProvider } from './config.js';
import type { InstanceFacts } from './instance.js';
import { Lookups } from './lookups.js';

/** Minimum interval between lists of volumes (ms). */
const VOLUMES_INTERVAL_MS = 60_000;

export class ProviderSession {
  readonly lookups: Lookups;
  readonly ports: FreshRead<readonly Port[]>;
  readonly floatingIps: FreshRead<readonly FloatingIp[]>;
  /** GB, by id. */
  private readonly sizes: CachedRead<ReadonlyMap<string, number>>;
  /** Monotonic time of the next list of volumes (ms). */
  private nextSizesAt = -Infinity;

  constructor(
    readonly config: OpenStackProvider,
    readonly client: Client,
    readonly clock: Clock,
    readonly random: RandomSource,
    readonly makeCall: MakeCall,
  ) {
    this.lookups = new Lookups(client, makeCall, clock);
    this.ports = new FreshRead((call: Call) => client.network.listPorts(call), makeCall, clock);
    this.floatingIps = new FreshRead((call: Call) => client.network.listFloatingIps(call), makeCall, clock);
    const readSizes = async (call: Call): Promise<ReadonlyMap<string, number>> =>
      new Map((await client.volume.listVolumes(call)).map(({ id, size }) => [id, size]));
    this.sizes = new CachedRead(readSizes, makeCall, clock, VOLUMES_INTERVAL_MS);
  }

  /**
   * Resolves with the sizes of volumes (GB) by id if a label uses volumes, because only then their quota matters. Waits
   * only for the first read, so that a failure of block storage does not delay lists of servers.
   */
  async volumeSizes({ log }: Call): Promise<ReadonlyMap<string, number>> {
    if (!usesVolumes(this.config) || !(await this.client.has('volume'))) return new Map();
    const reading = this.readSizes(log);
    if (this.sizes.latest === undefined) await reading;
    return this.sizes.latest ?? new Map();
  }

  private async readSizes(log: Logger): Promise<void> {
    if (this.clock.monotonic() < this.nextSizesAt) return;
    this.nextSizesAt = this.clock.monotonic() + VOLUMES_INTERVAL_MS;
    try {
      await this.sizes.read(0);
    } catch (error) {
      log.debug('Could not list the volumes; the sizes of new ones are unknown', { error });
    }
  }

  /** Returns the facts for describing servers, and reads those that are not cached. */
  async facts(): Promise<InstanceFacts> {
    const [flavors, networks] = await Promise.all([this.lookups.flavors.read(), this.lookups.networks.read()]);
    const { cloud } = this.client;
    return {
      flavors,
      networks,
      hints: cloud.networks,
      cloud: cloud.name,
      region: cloud.regionName,
      private: cloud.private,
    };
  }

  /** Returns the network that floating IPs are allocated from, or undefined if the cloud has none. */
  async floatingNetwork(): Promise<Network | undefined> {
    const { cloud } = this.client;
    if (!cloud.floatingIps) return undefined;
    const networks = await this.lookups.networks.read();
    const source = cloud.networks.find(({ natSource }) => natSource)?.name;
    if (source !== undefined) return networks.find(({ name, id }) => name === source || id === source);
    const external = networks.filter((network) => network.external);
    return external.find(({ isDefault }) => isDefault) ?? external[0];
  }

  /** Returns true if servers of this provider may have floating IPs that the driver created. */
  async usesFloatingIps(): Promise<boolean> {
    const wanted = [...this.config.pools.values()].some(({ labels }) =>
      [...labels.values()].some(({ autoFloatingIp }) => autoFloatingIp),
    );
    return wanted && (await this.floatingNetwork()) !== undefined;
  }

  /** Returns the floating IPs that are attached to a server. */
  async floatingIpsOf(serverId: string): Promise<readonly FloatingIp[]> {
    const all = await this.floatingIps.read();
    const attached = all.filter(({ deviceId, portId }) => deviceId !== undefined || portId !== undefined);
    if (attached.every(({ deviceId }) => deviceId !== undefined)) {
      return attached.filter(({ deviceId }) => deviceId === serverId);
    }
    // Older clouds report only the port.
    const ports = new Set((await this.ports.read()).flatMap((port) => (port.deviceId === serverId ? [port.id] : [])));
    return attached.filter(({ portId }) => portId !== undefined && ports.has(portId));
  }
}
