/** A region of our account: its resources, quotas and limits of calls. */

import type { Clock, RandomSource } from '@nodepool/core';
import { Idempotency } from './ec2/idempotency.js';
import type {
  Address,
  Fleet,
  Host,
  Image,
  ImportTask,
  Instance,
  KeyPair,
  NetworkInterface,
  SecurityGroup,
  Snapshot,
  SpotRequest,
  Subnet,
  Template,
  Volume,
  Vpc,
} from './ec2/records.js';
import { KINDS, Table, type Kind, type Resource } from './ec2/table.js';
import type { CapacityBook } from './capacity.js';
import { Quotas } from './quotas.js';
import type { AwsSettings } from './settings.js';
import { Throttle } from './throttle.js';
import type { Timeline } from './timeline.js';

/** The parts of the cloud that all regions share. */
export interface World {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly timeline: Timeline;
  readonly capacity: CapacityBook;
  readonly settings: AwsSettings;
  /** Sends an event of EventBridge to the queues that receive it. */
  publish(region: string, event: CloudEvent): void;
}

/** An event of EventBridge from EC2. */
export interface CloudEvent {
  readonly type: string;
  readonly resources: readonly string[];
  readonly detail: object;
  readonly at: number;
}

export class Region {
  readonly quotas = new Quotas();
  readonly throttle: Throttle;
  readonly idempotency = new Idempotency();
  readonly instances = new Table<Instance>(KINDS.instance);
  readonly volumes = new Table<Volume>(KINDS.volume);
  readonly snapshots = new Table<Snapshot>(KINDS.snapshot);
  readonly images = new Table<Image>(KINDS.image);
  readonly vpcs = new Table<Vpc>(KINDS.vpc);
  readonly subnets = new Table<Subnet>(KINDS.subnet);
  readonly groups = new Table<SecurityGroup>(KINDS.securityGroup);
  readonly keyPairs = new Table<KeyPair>(KINDS.keyPair);
  readonly interfaces = new Table<NetworkInterface>(KINDS.networkInterface);
  readonly addresses = new Table<Address>(KINDS.address);
  readonly hosts = new Table<Host>(KINDS.host);
  readonly templates = new Table<Template>(KINDS.template);
  readonly spotRequests = new Table<SpotRequest>(KINDS.spotRequest);
  readonly fleets = new Table<Fleet>(KINDS.fleet);
  readonly snapshotTasks = new Table<ImportTask>(KINDS.snapshotTask);
  readonly imageTasks = new Table<ImportTask>(KINDS.imageTask);
  /** All tables with taggable resources. */
  readonly tables: readonly Table<Resource>[];
  private order = 0;
  private isOld = false;
  private addressesMade = 0;

  constructor(
    readonly name: string,
    readonly zones: readonly string[],
    readonly world: World,
  ) {
    this.throttle = new Throttle(world.clock);
    this.tables = [
      ...[this.instances, this.volumes, this.snapshots, this.images, this.vpcs, this.subnets, this.groups],
      ...[this.keyPairs, this.interfaces, this.addresses, this.hosts, this.templates, this.spotRequests, this.fleets],
      ...[this.snapshotTasks, this.imageTasks],
    ];
  }

  get now(): number {
    return this.world.clock.now();
  }

  get settings(): AwsSettings {
    return this.world.settings;
  }

  /** Returns the common fields of a new resource. */
  newResource(kind: Kind, tags: ReadonlyMap<string, string> = new Map()): Resource {
    return {
      id: this.newId(kind.prefix),
      order: this.order++,
      createdAt: this.isOld ? 0 : this.now,
      tags: new Map(tags),
    };
  }

  /** Creates resources that calls see at once, even if reads lag. */
  addOld<T>(create: () => T): T {
    this.isOld = true;
    try {
      return create();
    } finally {
      this.isOld = false;
    }
  }

  newId(prefix: string): string {
    return `${prefix}-0${this.world.random.uuidHex().slice(0, 16)}`;
  }

  /** Returns an unused public address of the block for documentation. */
  newPublicIp(): string {
    const number = this.addressesMade++;
    return `198.${18 + (number >> 16)}.${(number >> 8) & 0xff}.${number & 0xff}`;
  }

  /** Returns the table with the kind of resource that the id names. */
  tableOf(id: string): Table<Resource> | undefined {
    const prefix = id.replace(/-[0-9a-f]+$/, '');
    return this.tables.find(({ kind }) => kind.prefix === prefix);
  }

  arn(service: string, rest: string, account: string): string {
    return `arn:aws:${service}:${this.name}:${account}:${rest}`;
  }
}
