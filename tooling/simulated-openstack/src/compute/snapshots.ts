/** Images of servers: snapshots, backups, and the disks of shelved servers. */

import type { JsonObject } from '@nodepool/core';
import type { Answer } from '@nodepool/simulated-cloud';
import { memberOf, textOf, type Caller, type OwnedRequest } from '../http/request-context.js';
import { NO_IMAGE, type ImageRecord, type CloudImages } from '../image/images.js';
import { computeError, malformed } from './errors.js';
import type { ServerRecord } from './records.js';
import { vmStateOf, type ServerStore } from './servers.js';

/** Size of the data of a snapshot, in bytes, as of the fake driver of nova. */
const SNAPSHOT_BYTES = 65_536;

/** The properties that nova adds to those of the base image. */
type Added = Readonly<Record<string, string>>;

export class Snapshots {
  constructor(
    private readonly servers: ServerStore,
    private readonly images: CloudImages,
  ) {}

  /** Creates the image that a `createImage` or `createBackup` action requests. */
  take(
    server: ServerRecord,
    action: 'createImage' | 'createBackup',
    body: JsonObject,
    { caller, serviceUrl }: OwnedRequest,
  ): Answer {
    if (server.status !== 'ACTIVE' && server.status !== 'SHUTOFF') {
      throw computeError(409, `Cannot '${action}' instance ${server.id} while it is in vm_state ${vmStateOf(server)}`);
    }
    const wanted = memberOf(body, action, malformed);
    const kind: Added =
      action === 'createImage'
        ? { image_type: 'snapshot' }
        : { image_type: 'backup', backup_type: textOf(wanted['backup_type'], '') };
    const image = this.add(server, textOf(wanted['name'], ''), kind, caller);
    const headers = { Location: `${serviceUrl}/images/${image.id}` };
    return { status: 202, type: 'application/json', ...(action === 'createImage' ? { headers } : {}) };
  }

  /** Resolves with the id of the image of the server's disk; undefined if the disk is a volume. */
  shelve(server: ServerRecord, caller: Caller): string | undefined {
    if (server.spec.imageId === null) return undefined;
    return this.add(server, `${server.name}-shelved`, { image_type: 'snapshot' }, caller).id;
  }

  /** Starts a shelved server from its image, which is deleted. Without the image, the server is lost. */
  unshelve(server: ServerRecord): void {
    const { shelvedImageId: id } = server;
    if (id !== undefined && !this.images.delete(id)) {
      this.servers.fail(server, `Image ${id} could not be found.`, 404);
      return;
    }
    this.servers.unshelve(server);
  }

  private add(server: ServerRecord, name: string, kind: Added, caller: Caller): ImageRecord {
    const { spec } = server;
    const isOfVolume = spec.imageId === null;
    const added = {
      base_image_ref: spec.imageId ?? '',
      owner_user_name: caller.userName,
      owner_project_name: caller.projectName,
      boot_roles: 'reader,member',
      ...(isOfVolume ? volumeProperties() : { instance_uuid: server.id, user_id: caller.userId, ...kind }),
    };
    const properties = new Map([...spec.imageProperties, ...Object.entries(added)]);
    const data = Buffer.alloc(isOfVolume ? 0 : SNAPSHOT_BYTES);
    return this.images.addActive({ ...NO_IMAGE, name, minDisk: spec.flavor.disk, properties }, server.project, data);
  }
}

/** The image of a server that boots from a volume contains no data. It names the snapshot of the volume. */
function volumeProperties(): Added {
  const mapping = [{ boot_index: 0, source_type: 'snapshot', destination_type: 'volume' }];
  return { root_device_name: '/dev/sda', block_device_mapping: JSON.stringify(mapping), bdm_v2: 'True' };
}
