/** What the state machines of one provider share: the client, what is kept of the cloud, and reads that are made once for all of them. */

import type { Call, Clock, RandomSource } from '@nodepool/core';
import type { Client } from './client/client.js';
import type { FloatingIp, Network, Port } from './client/network.js';
import { FreshRead, type MakeCall } from './client/shared-read.js';
import type { OpenStackProvider } from './config.js';
import type { InstanceFacts } from './instance.js';
import { Lookups } from './lookups.js';

export class Works {
  readonly lookups: Lookups;
  readonly ports: FreshRead<readonly Port[]>;
  readonly floatingIps: FreshRead<readonly FloatingIp[]>;

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
  }

  /** What servers are described with; reads what is not known yet. */
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

  /** Where floating IPs come from; undefined when the cloud has none. */
  async floatingNetwork(): Promise<Network | undefined> {
    const { cloud } = this.client;
    if (!cloud.floatingIps) return undefined;
    const networks = await this.lookups.networks.read();
    const source = cloud.networks.find(({ natSource }) => natSource)?.name;
    if (source !== undefined) return networks.find(({ name, id }) => name === source || id === source);
    const external = networks.filter((network) => network.external);
    return external.find(({ isDefault }) => isDefault) ?? external[0];
  }

  /** Whether servers of this provider may have floating IPs of ours. */
  async usesFloatingIps(): Promise<boolean> {
    const wanted = [...this.config.pools.values()].some(({ labels }) =>
      [...labels.values()].some(({ autoFloatingIp }) => autoFloatingIp),
    );
    return wanted && (await this.floatingNetwork()) !== undefined;
  }

  /** The floating IPs that lead to a server. */
  async floatingIpsOf(serverId: string): Promise<readonly FloatingIp[]> {
    const all = await this.floatingIps.read();
    const attached = all.filter(({ deviceId, portId }) => deviceId !== undefined || portId !== undefined);
    if (attached.every(({ deviceId }) => deviceId !== undefined)) {
      return attached.filter(({ deviceId }) => deviceId === serverId);
    }
    // Older clouds tell the port only.
    const ports = new Set((await this.ports.read()).flatMap((port) => (port.deviceId === serverId ? [port.id] : [])));
    return attached.filter(({ portId }) => portId !== undefined && ports.has(portId));
  }
}
