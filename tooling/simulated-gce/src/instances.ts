/** Instances and the timing of their creation, boot and deletion. */

import { linkTo, newId, type GceState } from './cloud-state.js';
import { messageAt, messagesAt, textAt, textsAt, timestamp, type Message } from './messages.js';
import { Disks, type Disk } from './disks.js';
import type { Images } from './images.js';
import { checkInstance, checkRequestId } from './instance-checks.js';
import type { OperationError } from './faults.js';
import type { Operations } from './operations.js';
import { alreadyExists, notFound } from './api-error.js';
import { machineTypesIn, QUOTAS, REGIONS, type MachineTypeSpec } from './settings.js';

/** An instance as tests inspect it. */
export interface InspectedInstance {
  readonly zone: string;
  readonly name: string;
  readonly status: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Body of the creation request. */
  readonly body: Message;
}

interface InstanceRecord {
  readonly id: string;
  readonly project: string;
  readonly zone: string;
  readonly name: string;
  readonly body: Message;
  readonly address: number;
  readonly type: MachineTypeSpec;
  readonly disk: Disk;
  readonly createdAt: number;
  runsAt: number;
  /** Time at which its deletion ends. */
  goneAt: number;
  stopped: { readonly reason: string } | undefined;
}

export class Instances {
  readonly disks: Disks;
  private readonly records = new Map<string, InstanceRecord>();
  private made = 0;
  private limits: Readonly<Record<string, number>> = QUOTAS;

  constructor(
    private readonly state: GceState,
    private readonly operations: Operations,
    private readonly images: Images,
  ) {
    this.disks = new Disks(state, images, (zone, name) => this.alive(zone, name));
  }

  insert(
    project: string,
    zone: string,
    body: Message,
    requestId: string | undefined,
    failure?: OperationError,
  ): Message {
    checkRequestId(requestId);
    const earlier = this.operations.ofRequest(requestId);
    if (earlier !== undefined) return earlier;
    const name = textAt(body, 'name') ?? '';
    const type = checkInstance(project, zone, body, (image) => this.images.sizeOf(image));
    if (this.alive(zone, name)) throw alreadyExists(`projects/${project}/zones/${zone}/instances/${name}`);
    const disk = this.disks.bootDiskOf(project, zone, body);
    const error = failure ?? this.overQuota(zone, type, body);
    const { operationMs: ms, bootMs } = this.state.settings;
    const target = `projects/${project}/zones/${zone}/instances/${name}`;
    if (error === undefined) {
      const now = this.state.clock.monotonic();
      this.made += 1;
      this.disks.add(disk);
      this.records.set(keyOf(zone, name), {
        id: newId(this.state.random),
        project,
        zone,
        name,
        body,
        type,
        disk,
        address: this.made,
        createdAt: now,
        runsAt: now + Math.max(ms, bootMs),
        goneAt: Infinity,
        stopped: undefined,
      });
    }
    return this.operations.begin({ project, zone, type: 'insert', target, ms, error, requestId });
  }

  delete(project: string, zone: string, name: string, error?: OperationError): Message {
    const record = this.existing(zone, name);
    const target = `projects/${project}/zones/${zone}/instances/${name}`;
    const now = this.state.clock.monotonic();
    const { deleteMs } = this.state.settings;
    if (error === undefined) record.goneAt = Math.min(record.goneAt, now + deleteMs);
    return this.operations.begin({
      project,
      zone,
      type: 'delete',
      target,
      ms: error === undefined ? record.goneAt - now : 0,
      error,
      requestId: undefined,
    });
  }

  get(zone: string, name: string): Message {
    return this.view(this.existing(zone, name));
  }

  console(zone: string, name: string): string {
    const { stopped } = this.existing(zone, name);
    return `[    0.000000] Linux version of ${name}\n${stopped === undefined ? `${name} login: ` : stopped.reason}\n`;
  }

  /** Returns the instances as lists show them, with lag. */
  listed(project: string): readonly { readonly zone: string; readonly message: Message }[] {
    const now = this.state.clock.monotonic();
    const { listLagMs } = this.state.settings;
    this.forget(now - listLagMs);
    return [...this.records.values()]
      .filter((each) => each.project === project && (listLagMs === 0 || each.createdAt + listLagMs <= now))
      .map((each) => ({ zone: each.zone, message: this.view(each) }));
  }

  /** Returns the current instances. */
  inspect(): readonly InspectedInstance[] {
    const now = this.state.clock.monotonic();
    return [...this.records.values()]
      .filter(({ goneAt }) => goneAt > now)
      .map((each) => ({
        zone: each.zone,
        name: each.name,
        status: this.statusOf(each),
        labels: textsAt(each.body, 'labels'),
        body: each.body,
      }));
  }

  /** Stops an instance as in a preemption. Returns false if it does not exist. */
  stop(zone: string, name: string, reason: string): boolean {
    const record = this.records.get(keyOf(zone, name));
    if (record !== undefined) record.stopped = { reason };
    return record !== undefined;
  }

  /**
   * Creates an instance with the properties of another one, its labels and metadata included, as from a machine image
   * or a template of the instance.
   */
  copy(zone: string, name: string, copy: string): void {
    const original = this.existing(zone, name);
    const { project, body, disk } = original;
    this.made += 1;
    const id = newId(this.state.random);
    const record = { ...original, id, name: copy, body: { ...body, name: copy }, address: this.made };
    this.disks.add({ ...disk, id: newId(this.state.random), name: copy, instance: copy });
    this.records.set(keyOf(zone, copy), { ...record, project, createdAt: this.state.clock.monotonic() });
  }

  /** Removes an instance, as a host failure does. Returns false if it does not exist. */
  removeInstance(zone: string, name: string): boolean {
    return this.records.delete(keyOf(zone, name));
  }

  setLimits(limits: Readonly<Record<string, number>>): void {
    this.limits = { ...this.limits, ...limits };
  }

  region(project: string, region: string): Message {
    const zones = REGIONS.get(region);
    if (zones === undefined) throw notFound(`projects/${project}/regions/${region}`);
    return {
      kind: 'compute#region',
      name: region,
      status: 'UP',
      selfLink: linkTo(this.state, `projects/${project}/regions/${region}`),
      zones: zones.map((zone) => linkTo(this.state, `projects/${project}/zones/${zone}`)),
      quotas: Object.entries(this.limits).map(([metric, limit]) => ({
        metric,
        limit,
        usage: this.usage(region, metric),
      })),
    };
  }

  regions(project: string): readonly Message[] {
    return [...REGIONS.keys()].map((region) => this.region(project, region));
  }

  zones(project: string): readonly Message[] {
    return [...REGIONS].flatMap(([region, zones]) =>
      zones.map((name) => ({
        kind: 'compute#zone',
        name,
        status: 'UP',
        region: linkTo(this.state, `projects/${project}/regions/${region}`),
        selfLink: linkTo(this.state, `projects/${project}/zones/${name}`),
      })),
    );
  }

  machineTypes(project: string, zone: string): readonly Message[] {
    return machineTypesIn(zone).map(({ name }) => this.machineType(project, zone, name));
  }

  machineType(project: string, zone: string, name: string): Message {
    const found = machineTypesIn(zone).find((type) => type.name === name);
    if (found === undefined) throw notFound(`projects/${project}/zones/${zone}/machineTypes/${name}`);
    return {
      kind: 'compute#machineType',
      name,
      guestCpus: found.cores,
      memoryMb: found.ramMb,
      ...(found.accelerators === undefined ? {} : { accelerators: found.accelerators }),
      zone,
      selfLink: linkTo(this.state, `projects/${project}/zones/${zone}/machineTypes/${name}`),
    };
  }

  private overQuota(zone: string, type: MachineTypeSpec, body: Message): OperationError | undefined {
    const region = zone.replace(/-[a-z]$/, '');
    for (const [metric, need] of [['INSTANCES', 1] as const, [this.metricOf(type, body), type.cores] as const]) {
      const limit = this.limits[metric];
      if (limit === undefined || this.usage(region, metric) + need <= limit) continue;
      const message = `Quota '${metric}' exceeded.  Limit: ${limit}.0 in region ${region}.`;
      return { code: 'QUOTA_EXCEEDED', message };
    }
    return undefined;
  }

  /**
   * Returns the quota metric of the cores. Preemptible cores have a separate quota if the region has one, else they
   * count as regular ones.
   */
  private metricOf({ name }: MachineTypeSpec, body: Message): string {
    const { preemptible, provisioningModel } = messageAt(body, 'scheduling');
    const isPreemptible = preemptible === true || provisioningModel === 'SPOT';
    if (isPreemptible && (this.limits['PREEMPTIBLE_CPUS'] ?? 0) > 0) return 'PREEMPTIBLE_CPUS';
    const [, family] = /^(n2|t2a)-/.exec(name) ?? [];
    return family === undefined ? 'CPUS' : `${family.toUpperCase()}_CPUS`;
  }

  private usage(region: string, metric: string): number {
    const there = [...this.records.values()].filter(
      ({ zone, name }) => zone.startsWith(`${region}-`) && this.alive(zone, name),
    );
    if (metric === 'INSTANCES') return there.length;
    return there
      .filter(({ type, body }) => this.metricOf(type, body) === metric)
      .reduce((sum, { type }) => sum + type.cores, 0);
  }

  private alive(zone: string, name: string): boolean {
    const record = this.records.get(keyOf(zone, name));
    return record !== undefined && record.goneAt > this.state.clock.monotonic();
  }

  private existing(zone: string, name: string): InstanceRecord {
    const record = this.records.get(keyOf(zone, name));
    if (record === undefined || !this.alive(zone, name)) throw notFound(`zones/${zone}/instances/${name}`);
    return record;
  }

  private forget(before: number): void {
    for (const [key, { goneAt }] of this.records) if (goneAt <= before) this.records.delete(key);
  }

  private statusOf(record: InstanceRecord): string {
    if (record.goneAt < Infinity) return 'STOPPING';
    if (record.stopped !== undefined) return 'TERMINATED';
    return this.state.clock.monotonic() >= record.runsAt ? 'RUNNING' : 'PROVISIONING';
  }

  private addressOf({ runsAt }: InstanceRecord, octets: string): Message {
    const { clock, settings } = this.state;
    return clock.monotonic() < runsAt + settings.addressMs ? {} : { natIP: `127.1.${octets}` };
  }

  private view(record: InstanceRecord): Message {
    const { state } = this;
    const { project, zone, name, id, body, address } = record;
    const scope = `projects/${project}/zones/${zone}`;
    const [network = {}] = messagesAt(body, 'networkInterfaces');
    const [access] = messagesAt(network, 'accessConfigs');
    const octets = `${address >> 8}.${address & 255}`;
    return {
      kind: 'compute#instance',
      id,
      name,
      zone: linkTo(state, scope),
      machineType: linkTo(state, `${scope}/machineTypes/${record.type.name}`),
      status: this.statusOf(record),
      ...(record.stopped === undefined ? {} : { statusMessage: record.stopped.reason }),
      creationTimestamp: timestamp(state.clock.now() - (state.clock.monotonic() - record.createdAt)),
      labels: textsAt(body, 'labels'),
      metadata: { ...messageAt(body, 'metadata'), kind: 'compute#metadata' },
      scheduling: messageAt(body, 'scheduling'),
      disks: [this.disks.attachedView(record.disk)],
      ...('guestAccelerators' in body ? { guestAccelerators: body['guestAccelerators'] } : {}),
      networkInterfaces: [
        {
          name: 'nic0',
          networkIP: `10.128.${octets}`,
          ...(access === undefined ? {} : { accessConfigs: [{ ...access, ...this.addressOf(record, octets) }] }),
        },
      ],
      selfLink: linkTo(state, `${scope}/instances/${name}`),
    };
  }
}

function keyOf(zone: string, name: string): string {
  return `${zone}/${name}`;
}
