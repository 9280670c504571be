/** A slot of a backing node as an instance of the framework. */

import { slotPlaceOf, type Connection, type Instance, type Node, type SlotUse } from '@nodepool/core';
import { unusableOf } from './lifetime.js';
import type { Backing } from './slots.js';

/** Returns the instance in a slot, with the facts of the backing node. */
export function instanceOf(provider: string, { held, id }: Backing, slot: number, use: SlotUse): Instance {
  const { node } = held;
  const lost = unusableOf(held);
  return {
    ...factsOf(node),
    externalId: use.node,
    ready: lost === undefined,
    deleted: false,
    ...(lost === undefined ? {} : { failed: `its backing node ${id} cannot be used any more: ${lost}` }),
    tags: tagsOf(provider, use),
    slot,
    // As the Python Nodepool writes it.
    driverData: {
      metadata: {
        nodepool_node_id: use.node,
        nodepool_pool_name: use.pool,
        nodepool_provider_name: provider,
      },
      backing_node: id,
      slot,
      node: use.node,
    },
  };
}

/** Returns the instances of nodes whose backing node the provider does not hold any more. */
export function lostInstances(
  provider: string,
  users: Iterable<Node>,
  backings: readonly Backing[],
): readonly Instance[] {
  const held = new Set(backings.map(({ id }) => id));
  const lost: Instance[] = [];
  for (const user of users) {
    const place = slotPlaceOf(user);
    if (place === undefined || held.has(place.backingNode)) continue;
    const attempt = user.progress?.attempt ?? null;
    lost.push({
      externalId: user.external_id ?? user.id,
      ready: false,
      deleted: false,
      failed: `its backing node ${place.backingNode} does not exist any more`,
      tags: tagsOf(provider, { node: user.id, attempt, pool: user.pool, installation: null }),
      slot: place.slot,
    });
  }
  return lost;
}

export function tagsOf(
  provider: string,
  { node, attempt, pool, installation }: SlotUse,
): Readonly<Record<string, string>> {
  const tags: Record<string, string> = { nodepool_node_id: node, nodepool_provider_name: provider };
  if (pool !== null) tags['nodepool_pool_name'] = pool;
  if (installation !== null) tags['nodepool_installation'] = installation;
  if (attempt !== null) tags['nodepool_launch_attempt'] = attempt;
  return tags;
}

function factsOf(node: Node): Partial<Instance> {
  return {
    interfaceIp: node.interface_ip ?? undefined,
    publicIpv4: node.public_ipv4 ?? undefined,
    privateIpv4: node.private_ipv4 ?? undefined,
    publicIpv6: node.public_ipv6 ?? undefined,
    cloud: node.cloud ?? undefined,
    region: node.region ?? undefined,
    az: node.az ?? undefined,
    resources: { instances: 1 },
    connection: connectionOf(node),
    hostKeys: node.host_keys,
    attributes: node.attributes ?? {},
  };
}

function connectionOf(node: Node): Partial<Connection> {
  const { connection_type: type, connection_port: port, username, python_path: pythonPath, shell_type } = node;
  return {
    ...(type === null ? {} : { type }),
    ...(port === null ? {} : { port }),
    username,
    pythonPath,
    shellType: shell_type,
  };
}
