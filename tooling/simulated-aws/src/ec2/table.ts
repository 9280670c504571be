/** The resources of one kind in a region. */

import { AwsError } from '../protocol/aws-error.js';

export interface Resource {
  readonly id: string;
  /** Order of creation in the region. */
  readonly order: number;
  readonly createdAt: number;
  /** Time since when lists no longer show it. */
  deletedAt?: number;
  readonly tags: Map<string, string>;
}

/** How EC2 names a kind of resource in ids and errors. */
export interface Kind {
  /** e.g. `instance`, as in tag specifications. */
  readonly type: string;
  /** e.g. `i` of `i-0123456789abcdef0`. */
  readonly prefix: string;
  /** e.g. `InvalidInstanceID.NotFound`. */
  readonly notFound: string;
  /** e.g. `InvalidInstanceID.Malformed`. */
  readonly malformed: string;
  /** e.g. `instance ID`, for messages. */
  readonly noun: string;
}

/** Time after which a deleted resource is forgotten (ms); longer than reads can lag. */
const FORGET_MS = 600_000;

export class Table<T extends Resource> {
  private readonly byId = new Map<string, T>();
  /** The existing resources; undefined after a removal. */
  private existing: T[] | undefined;

  constructor(readonly kind: Kind) {}

  add(resource: T): T {
    this.byId.set(resource.id, resource);
    this.existing?.push(resource);
    return resource;
  }

  /** Returns an existing resource, even one that lists do not show yet. */
  get(id: string | undefined): T | undefined {
    const found = id === undefined ? undefined : this.byId.get(id);
    return found?.deletedAt === undefined ? found : undefined;
  }

  /** Returns the existing resources, oldest first. */
  all(): readonly T[] {
    this.existing ??= [...this.byId.values()].filter(({ deletedAt }) => deletedAt === undefined);
    return this.existing;
  }

  /** Returns the resources that a call sees, oldest first. */
  seen(asOf: number): readonly T[] {
    for (const { id, deletedAt = Infinity } of this.byId.values()) {
      if (deletedAt + FORGET_MS <= asOf) this.byId.delete(id);
    }
    return [...this.byId.values()].filter((resource) => isSeen(resource, asOf));
  }

  /** Returns a resource that a call sees; undefined if there is none. */
  find(id: string, asOf: number): T | undefined {
    const found = this.byId.get(id);
    return found !== undefined && isSeen(found, asOf) ? found : undefined;
  }

  /** Returns the named resources. Throws if a call does not see one of them, or if an id is malformed. */
  require(ids: readonly string[], asOf: number): readonly T[] {
    const { prefix, notFound, malformed, noun } = this.kind;
    const wrong = ids.find((id) => !isWellFormed(prefix, id));
    if (wrong !== undefined) throw new AwsError(malformed, `Invalid id: "${wrong}" (expecting "${prefix}-...")`);
    const found = ids.map((id) => this.find(id, asOf));
    const absent = ids.filter((_, index) => found[index] === undefined);
    if (absent.length > 0) {
      const text =
        absent.length === 1 ? `The ${noun} '${absent.join()}' does` : `The ${noun}s '${absent.join(', ')}' do`;
      throw new AwsError(notFound, `${text} not exist`);
    }
    return found.filter((resource) => resource !== undefined);
  }

  /** Returns true if the resource was deleted a short time ago. */
  wasDeleted(id: string, asOf: number): boolean {
    const { deletedAt = Infinity } = this.byId.get(id) ?? {};
    return deletedAt <= asOf;
  }

  one(id: string, asOf: number): T {
    const [resource] = this.require([id], asOf);
    if (resource === undefined) throw new Error(`${id} is unknown`);
    return resource;
  }

  remove(resource: T, at: number): void {
    resource.deletedAt = at;
    this.existing = undefined;
  }

  /** Removes a resource at once and for all readers. */
  forget(id: string): void {
    this.byId.delete(id);
    this.existing = undefined;
  }
}

function isSeen({ createdAt, deletedAt = Infinity }: Resource, asOf: number): boolean {
  return createdAt <= asOf && asOf < deletedAt;
}

function isWellFormed(prefix: string, id: string): boolean {
  return id.startsWith(`${prefix}-`) && /^[0-9a-f]{8}([0-9a-f]{9})?$/.test(id.slice(prefix.length + 1));
}

/** See https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html. */
function kind(type: string, prefix: string, codes: string, noun: string, malformed = codes): Kind {
  return { type, prefix, notFound: `${codes}.NotFound`, malformed: `${malformed}.Malformed`, noun };
}

/** Import tasks have a code without suffix. */
function taskKind(type: string, prefix: string): Kind {
  const code = 'InvalidConversionTaskId';
  return { ...kind(type, prefix, code, 'import task ID'), notFound: code };
}

export const KINDS = {
  instance: kind('instance', 'i', 'InvalidInstanceID', 'instance ID'),
  volume: kind('volume', 'vol', 'InvalidVolume', 'volume', 'InvalidVolumeID'),
  snapshot: kind('snapshot', 'snap', 'InvalidSnapshot', 'snapshot', 'InvalidSnapshotID'),
  image: kind('image', 'ami', 'InvalidAMIID', 'image id'),
  subnet: kind('subnet', 'subnet', 'InvalidSubnetID', 'subnet ID'),
  securityGroup: kind('security-group', 'sg', 'InvalidGroup', 'security group', 'InvalidGroupId'),
  vpc: kind('vpc', 'vpc', 'InvalidVpcID', 'vpc ID'),
  networkInterface: kind(
    ...(['network-interface', 'eni', 'InvalidNetworkInterfaceID', 'networkInterface ID'] as const),
    'InvalidNetworkInterfaceId',
  ),
  address: kind('elastic-ip', 'eipalloc', 'InvalidAllocationID', 'allocation ID'),
  host: kind('dedicated-host', 'h', 'InvalidHostID', 'host ID'),
  template: kind('launch-template', 'lt', 'InvalidLaunchTemplateId', 'launch template'),
  keyPair: kind('key-pair', 'key', 'InvalidKeyPair', 'key pair'),
  spotRequest: kind('spot-instances-request', 'sir', 'InvalidSpotInstanceRequestID', 'spot instance request ID'),
  fleet: kind('fleet', 'fleet', 'InvalidFleetId', 'fleet ID'),
  snapshotTask: taskKind('import-snapshot-task', 'import-snap'),
  imageTask: taskKind('import-image-task', 'import-ami'),
} as const;
