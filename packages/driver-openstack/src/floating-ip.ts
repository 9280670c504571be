/**
 * Gives a server a floating IP: its port is found, an address is made for it with our tags in the description, and waited for until it
 * works.
 */

import {
  ConfigurationError,
  DriverError,
  InstanceFailedError,
  isDriverError,
  PendingCall,
  type Advance,
  type InstanceTags,
  type Listing,
  type MachineCall,
} from '@nodepool/core';
import { chooseAddresses } from './addresses.js';
import type { FloatingIp, Port } from './client/network.js';
import type { Server } from './client/server.js';
import { describeTags, tagsIn } from './tags.js';
import type { Works } from './works.js';

export interface FloatingIpOptions {
  readonly works: Works;
  readonly serverId: string;
  readonly tags: InstanceTags;
  /** It may have been made already, by a process that is no more. */
  readonly resumed: boolean;
}

/** Steps through it as a state machine does; `advance` gives undefined once there is an address that works. */
export class FloatingIpAttachment {
  /** Set as soon as it is known. */
  address: string | undefined;
  private readonly pending = new PendingCall<FloatingIp>();
  private made: FloatingIp | undefined;
  private looksFirst: boolean;

  constructor(private readonly options: FloatingIpOptions) {
    this.looksFirst = options.resumed;
  }

  /** Whether the server needs one: it can be reached at no public address, and the cloud has an address to give. */
  static async neededBy(server: Server, works: Works): Promise<boolean> {
    if ((await works.floatingNetwork()) === undefined) return false;
    const facts = await works.facts();
    const chosen = chooseAddresses(server, facts);
    return chosen.publicIpv4 === undefined && chosen.privateIpv4 !== undefined && !facts.private;
  }

  /** `listing` shall be one that was asked for after the step before. */
  advance(call: MachineCall): Advance | undefined {
    const { underway } = this.pending;
    if (underway !== undefined) return underway;
    if (this.made !== undefined) return this.watch(call.listing);
    if (!this.pending.settled) return this.pending.start(this.make(call));
    try {
      this.made = this.pending.take();
    } catch (error) {
      // It may have been made all the same; the next try looks for it.
      this.looksFirst = true;
      throw error;
    }
    this.address = this.made.address;
    return this.made.status === 'ACTIVE' ? undefined : { next: 'listing' };
  }

  private watch(listing: Listing | undefined): Advance | undefined {
    const instance = listing?.byExternalId(this.options.serverId);
    if (instance?.failed !== undefined) {
      throw new InstanceFailedError(`the server failed while it got its floating IP: ${instance.failed}`);
    }
    return instance !== undefined && instance.publicIpv4 === this.address ? undefined : { next: 'listing' };
  }

  private async make(call: MachineCall): Promise<FloatingIp> {
    const { works, serverId, tags } = this.options;
    if (this.looksFirst) {
      const existing = await this.existing();
      if (existing !== undefined) return existing;
    }
    const network = await works.floatingNetwork();
    if (network === undefined) throw new ConfigurationError('the cloud has no network that floating IPs come from');
    const { port, fixedIp } = await this.findPort();
    const description = describeTags({ ...tags });
    try {
      return await works.client.network.createFloatingIp(
        { networkId: network.id, portId: port.id, fixedIp, description },
        call,
      );
    } catch (error) {
      throw this.explained(error, serverId);
    }
  }

  /** What an earlier try, or an earlier process, has made. */
  private async existing(): Promise<FloatingIp | undefined> {
    const { works, serverId, tags } = this.options;
    const attached = await works.floatingIpsOf(serverId);
    return attached.find(
      ({ description }) => tagsIn(description)['nodepool_launch_attempt'] === tags.nodepool_launch_attempt,
    );
  }

  private async findPort(): Promise<{ readonly port: Port; readonly fixedIp: string }> {
    const { works, serverId } = this.options;
    const ports = (await works.ports.read()).filter(({ deviceId }) => deviceId === serverId);
    const { hints } = await works.facts();
    const networks = await works.lookups.networks.read();
    const destination = hints.find(({ natDestination }) => natDestination)?.name;
    const wanted = networks.find(({ name, id }) => name === destination || id === destination)?.id;
    const port = ports.find(({ networkId }) => networkId === wanted) ?? ports[0];
    const fixedIp = port?.fixedIps.find((address) => !address.includes(':'));
    if (port !== undefined && fixedIp !== undefined) return { port, fixedIp };
    throw new DriverError(
      'transient',
      `no port of server ${serverId} with an IPv4 address is known to the network service yet`,
      {
        outcome: 'not-applied',
      },
    );
  }

  /** Where no router leads from the server's network to the outside, no floating IP ever works. */
  private explained(error: unknown, serverId: string): unknown {
    if (!isDriverError(error) || error.code !== 'not-found' || !/not reachable/i.test(error.message)) return error;
    const message = `server ${serverId} cannot get a floating IP: ${error.message}; is its network connected to the outside by a router? "auto-floating-ip: false" does without`;
    return new ConfigurationError(message, { cause: error });
  }
}
