/**
 * Deletes resources without tags: ports that the cloud failed to delete with their servers and, if the operator enables
 * it, unattached floating IPs.
 *
 * A resource is deleted only after it has been in this condition for long enough. A port is deleted only if its server
 * is neither in a list that was requested afterwards nor found by its id, because a list may lack a part of the cloud
 * that is down.
 */

import { isDriverError, logCloudDeletion, type Call } from '@nodepool/core';
import type { Port } from './client/network.js';
import { tagsIn } from './tags.js';
import type { ProviderSession } from './provider-session.js';

/** Time for which a floating IP must be unattached before its deletion (ms). A launch may be about to attach it. */
const FLOATING_IP_SETTLE_MS = 60_000;

export class Housekeeping {
  private readonly ports = new FirstSeen();
  private readonly floatingIps = new FirstSeen();

  constructor(private readonly session: ProviderSession) {}

  async run(call: Call): Promise<void> {
    const { client, config } = this.session;
    if (!(await client.has('network'))) return;
    if (config.portCleanupMs !== Infinity) await this.cleanPorts(call);
    if (config.cleanFloatingIps) await this.cleanFloatingIps(call);
  }

  private async cleanPorts(call: Call): Promise<void> {
    const { client, config, clock } = this.session;
    const down = (await client.network.listPorts(call)).filter(isForgotten);
    const due = this.ports.due(down, clock.monotonic(), config.portCleanupMs);
    if (due.length === 0) return;
    const servers = new Set((await client.compute.listServers(call)).map(({ id }) => id));
    for (const port of due) {
      if (servers.has(port.deviceId) || (await this.exists(port.deviceId, call))) continue;
      const because = `its server ${port.deviceId} does not exist`;
      logCloudDeletion(call.log, { kind: 'port', externalId: port.id }, because);
      await this.delete('port', port.id, client.network.deletePort(port.id, call), call);
    }
  }

  private async exists(serverId: string, call: Call): Promise<boolean> {
    try {
      await this.session.client.compute.getServer(serverId, call);
      return true;
    } catch (error) {
      if (isDriverError(error) && error.code === 'not-found') return false;
      throw error;
    }
  }

  private async cleanFloatingIps(call: Call): Promise<void> {
    const { client, clock } = this.session;
    const listed = await client.network.listFloatingIps(call);
    // Floating IPs with our tags are leaked resources, which core handles by node records.
    const loose = listed.filter(
      ({ portId, description }) => portId === undefined && !('nodepool_node_id' in tagsIn(description)),
    );
    for (const { id, address } of this.floatingIps.due(loose, clock.monotonic(), FLOATING_IP_SETTLE_MS)) {
      logCloudDeletion(call.log, { kind: 'floating-ip', externalId: id, name: address }, 'it leads to no port');
      await this.delete('floating IP', id, client.network.deleteFloatingIp(id, call), call);
    }
  }

  private async delete(what: string, id: string, deletion: Promise<void>, call: Call): Promise<void> {
    try {
      await deletion;
      call.log.info('Deleted an unused resource', { what, external_id: id });
    } catch (error) {
      if (isDriverError(error) && error.code === 'not-found') return;
      // A failure does not stop the cleanup of the other resources; this one is retried in the next round.
      call.log.warn('Could not delete an unused resource', { what, external_id: id, error });
    }
  }
}

/** Returns true if compute created the port for a server and the port is down. */
function isForgotten({ status, deviceOwner, deviceId }: Port): boolean {
  return status === 'DOWN' && deviceOwner.startsWith('compute:') && deviceId !== '';
}

/** Times since which resources have been listed without interruption. */
class FirstSeen {
  private first: ReadonlyMap<string, number> = new Map();

  /** Records the listed resources and returns those that have been listed for at least `settleMs`. */
  due<T extends { readonly id: string }>(seen: readonly T[], now: number, settleMs: number): readonly T[] {
    this.first = new Map(seen.map(({ id }) => [id, this.first.get(id) ?? now]));
    return seen.filter(({ id }) => now - (this.first.get(id) ?? now) >= settleMs);
  }
}
