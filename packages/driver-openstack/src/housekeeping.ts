/**
 * Clean-up of what has no tags: ports that the cloud forgot to delete with their servers, and, where the operator wants that, floating
 * IPs that lead nowhere.
 *
 * Only what was seen in the same condition before, long enough ago, is deleted, and a port only when a list of servers that was
 * asked for after that knows nothing of its server.
 */

import { isDriverError, logCloudDeletion, type Call } from '@nodepool/core';
import type { Port } from './client/network.js';
import { tagsIn } from './tags.js';
import type { Works } from './works.js';

/** From the first sighting of a floating IP that leads nowhere to its deletion: a launch may be about to attach it. */
const FLOATING_IP_SETTLE_MS = 60_000;

export class Housekeeping {
  private readonly ports = new Sightings();
  private readonly floatingIps = new Sightings();

  constructor(private readonly works: Works) {}

  async run(call: Call): Promise<void> {
    const { client, config } = this.works;
    if (!(await client.has('network'))) return;
    if (config.portCleanupMs !== Infinity) await this.cleanPorts(call);
    if (config.cleanFloatingIps) await this.cleanFloatingIps(call);
  }

  private async cleanPorts(call: Call): Promise<void> {
    const { client, config, clock } = this.works;
    const down = (await client.network.listPorts(call)).filter(isForgotten);
    const due = this.ports.due(down, clock.monotonic(), config.portCleanupMs);
    if (due.length === 0) return;
    const servers = new Set((await client.compute.listServers(call)).map(({ id }) => id));
    for (const port of due) {
      if (servers.has(port.deviceId)) continue;
      const because = `its server ${port.deviceId} does not exist`;
      logCloudDeletion(call.log, { kind: 'port', externalId: port.id }, because);
      await this.delete('port', port.id, client.network.deletePort(port.id, call), call);
    }
  }

  private async cleanFloatingIps(call: Call): Promise<void> {
    const { client, clock } = this.works;
    const listed = await client.network.listFloatingIps(call);
    // Ours are leaked resources like others, which the records of nodes decide about.
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
      call.log.info('Something that belongs to nothing was deleted', { what, external_id: id });
    } catch (error) {
      if (isDriverError(error) && error.code === 'not-found') return;
      // Others shall not stay because of this one; it is due again in the next round.
      call.log.warn('Something that belongs to nothing could not be deleted', { what, external_id: id, error });
    }
  }
}

/** Ports that compute has made for a server, and that are down. */
function isForgotten({ status, deviceOwner, deviceId }: Port): boolean {
  return status === 'DOWN' && deviceOwner.startsWith('compute:') && deviceId !== '';
}

/** When things were first seen, in unbroken sequence. */
class Sightings {
  private first: ReadonlyMap<string, number> = new Map();

  /** Takes what is seen now; gives what has been seen for so long. */
  due<T extends { readonly id: string }>(seen: readonly T[], now: number, settleMs: number): readonly T[] {
    this.first = new Map(seen.map(({ id }) => [id, this.first.get(id) ?? now]));
    return seen.filter(({ id }) => now - (this.first.get(id) ?? now) >= settleMs);
  }
}
