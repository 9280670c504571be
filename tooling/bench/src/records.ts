/** Creates records in ZooKeeper before a launcher starts. */

import type { TransactionOp, ZooKeeper } from '@nodepool/zookeeper';
import { systemClock } from '@nodepool/core';

/** Operations per transaction, within ZooKeeper's limit of 1 MiB. */
const BATCH = 200;
export const NODEPOOL = '/nodepool';
const CONTENDER = `${'0'.repeat(32)}__lock__`;

/** Creates locked nodes that requestors hold and resolves with their paths. */
export async function createHeldNodes(zooKeeper: ZooKeeper, nodes: readonly object[]): Promise<string[]> {
  const paths = await createNodes(zooKeeper, nodes);
  await inBatches(zooKeeper, paths, (path) => [
    { type: 'create', path: `${path}/lock/${CONTENDER}`, options: { mode: 'ephemeral-sequential' } },
  ]);
  return paths;
}

/** Creates unlocked nodes and resolves with their paths. */
export async function createNodes(zooKeeper: ZooKeeper, nodes: readonly object[]): Promise<string[]> {
  const paths = await createAll(zooKeeper, `${NODEPOOL}/nodes/`, nodes);
  await inBatches(zooKeeper, paths, (path) => [{ type: 'create', path: `${path}/lock` }]);
  return paths;
}

/** Creates records with these contents and resolves with their paths. */
export async function createAll(zooKeeper: ZooKeeper, prefix: string, records: readonly object[]): Promise<string[]> {
  const paths: string[] = [];
  await inBatches(
    zooKeeper,
    records,
    (record) => [
      {
        type: 'create',
        path: prefix,
        data: Buffer.from(JSON.stringify(record)),
        options: { mode: 'persistent-sequential' },
      },
    ],
    (path) => paths.push(path),
  );
  return paths;
}

async function inBatches<T>(
  zooKeeper: ZooKeeper,
  values: readonly T[],
  operations: (value: T) => TransactionOp[],
  created: (path: string) => void = () => undefined,
): Promise<void> {
  for (let start = 0; start < values.length; start += BATCH) {
    const results = await zooKeeper.transaction(values.slice(start, start + BATCH).flatMap(operations));
    for (const result of results) if (result.type === 'create') created(result.path);
  }
}

/** Returns a node that a requestor holds. */
export function nodeInUse(provider: string, pool: string, label: string, index: number): object {
  return { ...node(provider, pool, label, index), state: 'in-use', allocated_to: '100-0000000000' };
}

/** Returns a ready node. */
export function readyNode(provider: string, pool: string, label: string, index: number): object {
  return { ...node(provider, pool, label, index), state: 'ready', allocated_to: null };
}

/** Returns a record of realistic size. */
function node(provider: string, pool: string, label: string, index: number): object {
  const now = systemClock.now() / 1000;
  const address = `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`;
  return {
    state_time: now,
    created_time: now,
    cloud: provider,
    provider,
    pool,
    type: [label],
    az: 'zone-1',
    region: 'region-1',
    public_ipv4: address,
    private_ipv4: address,
    public_ipv6: '',
    host_id: 'd8c5f3a1b2e4',
    interface_ip: address,
    connection_port: 22,
    ssh_port: 22,
    image_id: label,
    launcher: `bench-PoolWorker.${provider}-${pool}-8d256d18da9b46b5b2494f36b3686348`,
    external_id: `i-${provider}-${index}`,
    hostname: null,
    comment: null,
    user_data: null,
    hold_job: null,
    host_keys: [`ssh-ed25519 ${'A'.repeat(68)}`, `ssh-rsa ${'A'.repeat(372)}`],
    username: 'zuul',
    connection_type: 'ssh',
    shell_type: null,
    hold_expiration: null,
    resources: { cores: 1, instances: 1, ram: 1024 },
    slot: null,
    attributes: {},
    python_path: 'auto',
    tenant_name: 'tenant',
    driver_data: null,
    requestor: 'bench',
  };
}
