/** Attaches volumes to running servers and detaches them. */

import type { Answer } from '@nodepool/simulated-cloud';
import { bodyOf, json, memberOf, textOf, type Caller, type OwnedRequest } from '../http/request-context.js';
import { pythonRepr } from '../text.js';
import type { VolumeRecord, VolumeStore } from '../volume/volumes.js';
import { computeError, malformed } from './errors.js';
import type { ServerRecord } from './records.js';
import { vmStateOf } from './servers.js';

const UUID = /^[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}$/i;

export class VolumeAttachments {
  constructor(private readonly volumes: VolumeStore) {}

  list(server: ServerRecord): Answer {
    const attached = this.attachedTo(server);
    return json(200, { volumeAttachments: attached.map((volume) => viewOf(server, volume)) });
  }

  show(server: ServerRecord, { params }: OwnedRequest): Answer {
    return json(200, { volumeAttachment: viewOf(server, this.attached(server, params['volume'] ?? '')) });
  }

  attach(server: ServerRecord, request: OwnedRequest): Answer {
    const spec = memberOf(bodyOf(request, malformed), 'volumeAttachment', malformed);
    const { volumeId: id, device } = spec;
    if (id === undefined) {
      const value = pythonRepr(spec);
      const problem = `Value: ${value}. 'volumeId' is a required property`;
      throw computeError(400, `Invalid input for field/attribute volumeAttachment. ${problem}`);
    }
    if (typeof id !== 'string' || !UUID.test(id)) {
      const problem = `Value: ${textOf(id, '')}. ${pythonRepr(id)} is not a 'uuid'`;
      throw computeError(400, `Invalid input for field/attribute volumeId. ${problem}`);
    }
    const volume = this.volumeOf(request.caller, id);
    if (server.status !== 'ACTIVE' && server.status !== 'SHUTOFF') throw wrongState('attach_volume', server);
    if (volume.attachment !== null) {
      const where = `is already attached to instances: ${volume.attachment.serverId}`;
      throw computeError(400, `Invalid volume: volume ${id} ${where}`);
    }
    if (volume.status !== 'available') {
      throw computeError(400, `Invalid volume: status must be available, but it is ${volume.status}`);
    }
    server.volumes.set(id, false);
    this.volumes.attach(volume, server.id, typeof device === 'string' ? device : this.freeDevice(server));
    return json(200, { volumeAttachment: viewOf(server, volume) });
  }

  detach(server: ServerRecord, { params, caller }: OwnedRequest): Answer {
    const id = params['volume'] ?? '';
    this.volumeOf(caller, id);
    const volume = this.attached(server, id);
    if (isRoot(server, id)) throw computeError(400, 'Cannot detach a root device volume');
    if (server.status !== 'ACTIVE' && server.status !== 'SHUTOFF') throw wrongState('detach_volume', server);
    server.volumes.delete(id);
    this.volumes.detach(volume);
    return { status: 202, type: 'application/json' };
  }

  private attachedTo(server: ServerRecord): readonly VolumeRecord[] {
    return [...server.volumes.keys()].flatMap((id) => this.volumes.table.get(id) ?? []);
  }

  private attached(server: ServerRecord, id: string): VolumeRecord {
    const found = this.attachedTo(server).find((volume) => volume.id === id);
    if (found !== undefined) return found;
    throw computeError(404, `Instance ${server.id} is not attached to volume ${id}`);
  }

  private volumeOf(caller: Caller, id: string): VolumeRecord {
    const volume = this.volumes.table.get(id);
    if (volume !== undefined && (volume.project === caller.projectId || caller.admin)) return volume;
    throw computeError(404, `Volume ${id} could not be found.`);
  }

  /** Returns a free device name; `/dev/sda` is the boot disk. */
  private freeDevice(server: ServerRecord): string {
    const taken = new Set(this.attachedTo(server).map(({ attachment }) => attachment?.device));
    const letter = Array.from('bcdefghijklmnopqrstuvwxyz').find((candidate) => !taken.has(`/dev/sd${candidate}`));
    if (letter === undefined) throw computeError(403, 'Too many volumes are attached');
    return `/dev/sd${letter}`;
  }
}

function isRoot({ spec, volumes }: ServerRecord, id: string): boolean {
  return spec.bootVolume !== null && [...volumes.keys()][0] === id;
}

function wrongState(action: string, server: ServerRecord): Error {
  const where = `vm_state ${vmStateOf(server)}`;
  return computeError(409, `Cannot '${action}' instance ${server.id} while it is in ${where}`);
}

function viewOf(server: ServerRecord, { id, attachment }: VolumeRecord): object {
  return { id, volumeId: id, serverId: server.id, device: attachment?.device ?? null };
}
