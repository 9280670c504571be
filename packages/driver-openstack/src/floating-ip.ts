/** Attaches a floating IP to a server: finds the port, creates an address with our tags, waits until it is active. */

import type { Advance, InstanceTags, Listing, MachineCall } from '@nodepool/core';
import { ConfigurationError, DriverError, InstanceFailedError, isDriverError, PendingCall } from '@nodepool/core';
import { chooseAddresses } from './addresses.js';
import type { FloatingIp } from './client/network.js';
import type { Server } from './client/server.js';
import { describeTags, tagsIn } from './tags.js';
import type { ProviderSession } from './provider-session.js';

export interface FloatingIpOptions {
  readonly session: ProviderSession;
  readonly serverId: string;
  readonly tags: InstanceTags;
  /** True if a former process may have created the address already. */
  readonly resumed: boolean;
}

interface PortAddress {
  readonly portId: string;
  readonly fixedIp: string;
}

/** Attaches an address step by step like a state machine. `advance` returns undefined once one is active. */
export class FloatingIpAttachment {
  /** Set as soon as the address is known. */
  address: string | undefined;
  private readonly pending = new PendingCall<FloatingIp>();
  private made: FloatingIp | undefined;
  private looksFirst: boolean;

  constructor(private readonly options: FloatingIpOptions) {
    this.looksFirst = options.resumed;
  }

  /** Resolves with true if the server has no public address and the cloud can allocate a floating IP. */
  static async neededBy(server: Server, session: ProviderSession): Promise<boolean> {
    if ((await session.floatingNetwork()) === undefined) return false;
    const facts = await session.facts();
    const chosen = chooseAddresses(server, facts);
    return chosen.publicIpv4 === undefined && chosen.privateIpv4 !== undefined && !facts.private;
  }

  /** `listing` must have been requested after the previous step. */
  advance(call: MachineCall): Advance | undefined {
    const { underway } = this.pending;
    if (underway !== undefined) return underway;
    if (this.made !== undefined) return this.watch(call.listing);
    if (!this.pending.settled) return this.pending.start(this.make(call));
    try {
      this.made = this.pending.take();
    } catch (error) {
      // The address may have been created nevertheless; the next attempt searches for it first.
      this.looksFirst = true;
      throw error;
    }
    this.address = this.made.address;
    return this.made.status === 'ACTIVE' ? undefined : { next: 'listing' };
  }

  private watch(listing: Listing | undefined): Advance | undefined {
    const instance = listing?.byExternalId(this.options.serverId);
    if (instance?.failed !== undefined) {
      throw new InstanceFailedError(`the server failed during the assignment of its floating IP: ${instance.failed}`);
    }
    return instance !== undefined && instance.publicIpv4 === this.address ? undefined : { next: 'listing' };
  }

  private async make(call: MachineCall): Promise<FloatingIp> {
    const { session, serverId, tags } = this.options;
    if (this.looksFirst) {
      const existing = await this.existing();
      if (existing !== undefined) return existing;
    }
    const network = await session.floatingNetwork();
    if (network === undefined) throw new ConfigurationError('the cloud has no network for floating IPs');
    const ports = await this.findPorts();
    const description = describeTags({ ...tags });
    let refusal: unknown;
    for (const { portId, fixedIp } of ports) {
      try {
        return await session.client.network.createFloatingIp(
          { networkId: network.id, portId, fixedIp, description },
          call,
        );
      } catch (error) {
        if (!isUnreachable(error)) throw error;
        refusal = error;
      }
    }
    throw unreachable(refusal, serverId);
  }

  /** Resolves with the address that an earlier attempt or process created. */
  private async existing(): Promise<FloatingIp | undefined> {
    const { session, serverId, tags } = this.options;
    const attached = await session.floatingIpsOf(serverId);
    return attached.find(
      ({ description }) => tagsIn(description)['nodepool_launch_attempt'] === tags.nodepool_launch_attempt,
    );
  }

  /**
   * Returns the server's ports with an IPv4 address, in an order that is random unless `clouds.yaml` names the network.
   * Some may be on networks without a router to the outside.
   */
  private async findPorts(): Promise<readonly PortAddress[]> {
    const { session, serverId } = this.options;
    const ports = (await session.ports.read()).filter(({ deviceId }) => deviceId === serverId);
    const { hints } = await session.facts();
    const networks = await session.lookups.networks.read();
    const destination = hints.find(({ natDestination }) => natDestination)?.name;
    const wanted = networks.find(({ name, id }) => name === destination || id === destination)?.id;
    const usable = ports.flatMap(({ id, networkId, fixedIps }) => {
      const fixedIp = fixedIps.find((address) => !address.includes(':'));
      return fixedIp === undefined ? [] : [{ portId: id, networkId, fixedIp }];
    });
    const preferred = usable.filter(({ networkId }) => networkId === wanted);
    if (usable.length > 0) return preferred.length > 0 ? preferred : usable;
    throw new DriverError(
      'transient',
      `no port of server ${serverId} with an IPv4 address is known to the network service yet`,
      {
        outcome: 'not-applied',
      },
    );
  }
}

/** Returns true if no router connects the port's network to the external network. */
function isUnreachable(error: unknown): boolean {
  return isDriverError(error) && error.code === 'not-found' && /not reachable/i.test(error.message);
}

/** Returns the error of a server without a port to which a floating IP can be attached. */
function unreachable(refusal: unknown, serverId: string): ConfigurationError {
  const said = refusal instanceof Error ? refusal.message : String(refusal);
  const message = `server ${serverId} cannot get a floating IP: ${said}; is its network connected to the outside by a router? "auto-floating-ip: false" does without`;
  return new ConfigurationError(message, { cause: refusal });
}
