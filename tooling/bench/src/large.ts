/** A site in full use: what ZooKeeper holds before the launcher starts, and what is measured of the launcher then. */

import type { ExampleConfigOptions, FinishedRequest, Requestor } from '@nodepool/harness';
import { systemClock, type TransactionOp, type ZooKeeper } from '@nodepool/zookeeper';
import { LABEL, type Bed } from './bed.js';
import { burst, singleRequests } from './scenarios.js';

const FULL_PROVIDERS = ['full-1', 'full-2', 'full-3', 'full-4'] as const;
const NODES_PER_FULL_PROVIDER = 2475;
const READY_NODES = 100;
const WAITING_REQUESTS = 5000;
/** Operations of one transaction while ZooKeeper is filled: below its limit of 1 MiB. */
const BATCH = 200;
const NODEPOOL = '/nodepool';
const CONTENDER = `${'0'.repeat(32)}__lock__`;

/** Four providers whose limits are in use, and one with room. */
export const LARGE_SITE: Pick<ExampleConfigOptions, 'labels' | 'providers'> = {
  labels: [LABEL, 'spare', ...FULL_PROVIDERS],
  providers: [
    { labels: [LABEL, 'spare'] },
    ...FULL_PROVIDERS.map((name) => ({ name, labels: [name], maxServers: NODES_PER_FULL_PROVIDER })),
  ],
};

/** Durations in milliseconds. */
export interface LargeSiteFigures {
  /** From the start of the process until a request that was there before is fulfilled. */
  readonly firstDecisionMs: number;
  /** One request for the provider with room, median of 50. */
  readonly singleRequestMs: number;
  /** 1,000 requests at once for the provider with room. */
  readonly burstMs: number;
}

/** Fills ZooKeeper with 9,900 nodes in use, 100 ready ones and 5,000 requests; `first` ends when the launcher has decided it. */
export class LargeSite {
  private first: Promise<FinishedRequest> | undefined;

  /** To be called before the launcher starts. */
  async fill(zooKeeper: ZooKeeper, requestor: Requestor): Promise<void> {
    for (const path of ['', '/nodes', '/requests']) await zooKeeper.create(`${NODEPOOL}${path}`);
    const nodes = FULL_PROVIDERS.flatMap((provider) =>
      Array.from({ length: NODES_PER_FULL_PROVIDER }, (_, index) => nodeInUse(provider, index)),
    );
    const spare = Array.from({ length: READY_NODES }, (_, index) => readyNode(index));
    const ids = await createAll(zooKeeper, `${NODEPOOL}/nodes/`, [...nodes, ...spare]);
    const held = ids.slice(0, nodes.length);
    await inBatches(zooKeeper, ids, (path) => [{ type: 'create', path: `${path}/lock` }]);
    await inBatches(zooKeeper, held, (path) => [
      { type: 'create', path: `${path}/lock/${CONTENDER}`, options: { mode: 'ephemeral-sequential' } },
    ]);
    const requests = Array.from({ length: WAITING_REQUESTS }, (_, index) =>
      waitingRequest(FULL_PROVIDERS[index % FULL_PROVIDERS.length] ?? FULL_PROVIDERS[0]),
    );
    await createAll(zooKeeper, `${NODEPOOL}/requests/200-`, requests);
    await requestor.start();
    this.first = (await requestor.submit([LABEL])).finished;
  }

  async measure(bed: Bed, signal: AbortSignal): Promise<LargeSiteFigures> {
    if (this.first === undefined) throw new Error('the site was not filled');
    const first = await this.first;
    const firstDecisionMs = systemClock.monotonic() - bed.startedAt;
    for (const node of await bed.requestor.take(first)) await bed.requestor.giveBack(node);
    bed.beginPhase();
    const { medianMs } = await singleRequests(bed, 50, signal);
    bed.beginPhase();
    const { fulfilledMs } = await burst(bed, 1000, signal);
    return { firstDecisionMs, singleRequestMs: medianMs, burstMs: fulfilledMs };
  }

  /** Names of the phases in which the delay of the event loop is counted, in their order. */
  static readonly phases = ['start', '50 single requests', '1,000 at once'] as const;
}

async function createAll(zooKeeper: ZooKeeper, prefix: string, records: readonly object[]): Promise<string[]> {
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

function nodeInUse(provider: string, index: number): object {
  return { ...node(provider, provider, index), state: 'in-use', allocated_to: '100-0000000000' };
}

function readyNode(index: number): object {
  return { ...node('example', 'spare', index), state: 'ready', allocated_to: null };
}

/** A record of the size that real ones have. */
function node(provider: string, label: string, index: number): object {
  const now = systemClock.now() / 1000;
  const address = `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`;
  return {
    state_time: now,
    created_time: now,
    cloud: provider,
    provider,
    pool: 'main',
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
    launcher: `bench-PoolWorker.${provider}-main-8d256d18da9b46b5b2494f36b3686348`,
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

function waitingRequest(label: string): object {
  const now = systemClock.now() / 1000;
  return {
    state: 'requested',
    state_time: now,
    created_time: now,
    declined_by: [],
    node_types: [label],
    nodes: [],
    reuse: true,
    requestor: 'bench',
    requestor_data: { build_set_uuid: 'f'.repeat(32), tenant_name: 'tenant', pipeline_name: 'check', job_name: 'unit' },
    provider: null,
    relative_priority: 0,
    event_id: 'e'.repeat(32),
    tenant_name: 'tenant',
  };
}
