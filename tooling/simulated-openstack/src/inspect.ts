/** The actual content of the simulated cloud, without API, faults or lag. */

import type { CloudImages } from './image/images.js';
import type { NetworkStore } from './network/networks.js';
import type { ServerStore } from './compute/servers.js';
import type { VolumeStore } from './volume/volumes.js';

/** Properties of every resource. */
export interface Inspected {
  readonly id: string;
  readonly name: string;
  /** Name of the project. */
  readonly project: string;
  readonly status: string;
}

export interface InspectedServer extends Inspected {
  readonly metadata: Readonly<Record<string, string>>;
  /** e.g. `deleting`. */
  readonly taskState: string | null;
  readonly fault: string | null;
  readonly userData: string | null;
  readonly keyName: string | null;
  readonly configDrive: boolean;
  readonly securityGroups: readonly string[];
  readonly availabilityZone: string | null;
  readonly flavor: string;
  readonly imageId: string | null;
  /** Ids. */
  readonly volumes: readonly string[];
}

export interface InspectedPort extends Inspected {
  readonly deviceId: string;
  readonly deviceOwner: string;
  readonly description: string;
  readonly addresses: readonly string[];
}

export interface InspectedFloatingIp extends Inspected {
  readonly address: string;
  readonly portId: string | null;
  readonly description: string;
  readonly tags: readonly string[];
}

export interface InspectedVolume extends Inspected {
  readonly sizeGb: number;
  readonly serverId: string | null;
  readonly metadata: Readonly<Record<string, string>>;
}

export interface InspectedImage extends Inspected {
  /** Bytes; null before the upload. */
  readonly size: number | null;
  readonly md5: string | null;
  readonly hidden: boolean;
  readonly properties: Readonly<Record<string, string>>;
}

/** Number of resources beyond the sample cloud, by kind. */
export interface Leftovers {
  readonly servers: number;
  readonly ports: number;
  readonly floatingIps: number;
  readonly volumes: number;
  readonly images: number;
}

/** Restricts the result to one project, by name. */
export interface Scope {
  readonly project?: string;
}

export interface InspectedStores {
  readonly servers: ServerStore;
  readonly networks: NetworkStore;
  readonly volumes: VolumeStore;
  readonly images: CloudImages;
  readonly nameOfProject: (id: string) => string;
  /** Ids of the sample cloud's images. */
  readonly sampleImages: ReadonlySet<string>;
}

export class Inspector {
  constructor(private readonly stores: InspectedStores) {}

  servers(scope: Scope = {}): readonly InspectedServer[] {
    return this.collect(this.stores.servers.table.all(), scope, (server) => ({
      name: server.name,
      status: server.status,
      metadata: server.metadata,
      taskState: server.taskState,
      fault: server.fault?.message ?? null,
      flavor: server.spec.flavor.name,
      imageId: server.spec.imageId,
      userData: server.spec.userData,
      keyName: server.spec.keyName,
      configDrive: server.spec.configDrive,
      securityGroups: server.spec.securityGroups,
      availabilityZone: server.spec.availabilityZone,
      volumes: [...server.volumes.keys()],
    }));
  }

  /** Returns the ports, including those of routers. */
  ports(scope: Scope = {}): readonly InspectedPort[] {
    return this.collect(this.stores.networks.ports.all(), scope, (port) => ({
      name: port.name,
      status: port.status,
      deviceId: port.deviceId,
      deviceOwner: port.deviceOwner,
      description: port.description,
      addresses: port.fixedIps.map(({ ip_address }) => ip_address),
    }));
  }

  floatingIps(scope: Scope = {}): readonly InspectedFloatingIp[] {
    return this.collect(this.stores.networks.floatingIps.all(), scope, (floating) => ({
      name: floating.address,
      status: floating.portId === null ? 'DOWN' : 'ACTIVE',
      address: floating.address,
      portId: floating.portId,
      description: floating.description,
      tags: floating.tags,
    }));
  }

  volumes(scope: Scope = {}): readonly InspectedVolume[] {
    return this.collect(this.stores.volumes.table.all(), scope, (volume) => ({
      name: volume.name ?? '',
      status: volume.status,
      sizeGb: volume.sizeGb,
      metadata: volume.metadata,
      serverId: volume.attachment?.serverId ?? null,
    }));
  }

  images(scope: Scope = {}): readonly InspectedImage[] {
    return this.collect(this.stores.images.table.all(), scope, (image) => ({
      name: image.name ?? '',
      status: image.status,
      size: image.size,
      md5: image.md5,
      hidden: image.hidden,
      properties: Object.fromEntries(image.properties),
    }));
  }

  leftovers(scope: Scope = {}): Leftovers {
    const ofRouters = (port: InspectedPort): boolean => port.deviceOwner.startsWith('network:');
    return {
      servers: this.servers(scope).length,
      ports: this.ports(scope).filter((port) => !ofRouters(port)).length,
      floatingIps: this.floatingIps(scope).length,
      volumes: this.volumes(scope).length,
      images: this.images(scope).filter(({ id }) => !this.stores.sampleImages.has(id)).length,
    };
  }

  private collect<R extends { readonly id: string; readonly project: string }, V>(
    records: Iterable<R>,
    scope: Scope,
    view: (record: R) => V,
  ): (V & { readonly id: string; readonly project: string })[] {
    const { nameOfProject } = this.stores;
    return [...records]
      .filter(({ project }) => scope.project === undefined || nameOfProject(project) === scope.project)
      .map((record) => ({ id: record.id, project: nameOfProject(record.project), ...view(record) }));
  }
}
