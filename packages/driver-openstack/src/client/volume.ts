/** Calls to the block storage service (cinder, API v3), and the properties that the driver reads from its answers. */

import { numberAt, objectAt, stringAt, TransientError, type Call } from '@nodepool/core';
import { memberOf, requiredText } from './answers.js';
import { allPages } from './pages.js';
import { textValues } from './server.js';
import type { ServiceRequest, Session } from './session.js';

const LIST_TIMEOUT_MS = 110_000;

export interface Volume {
  readonly id: string;
  readonly name: string;
  /** `available`, `in-use`, `error`, … */
  readonly status: string;
  /** GB. */
  readonly size: number;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Limits of a project; -1 means unlimited. */
export interface VolumeLimits {
  readonly volumes: number;
  /** GB. */
  readonly gigabytes: number;
}

export class BlockStorage {
  constructor(private readonly session: Session) {}

  async listVolumes(call: Call): Promise<readonly Volume[]> {
    const request: ServiceRequest = { ...get('volumes.detail', '/volumes/detail'), timeoutMs: LIST_TIMEOUT_MS };
    const volumes = await allPages(this.session, request, 'volumes', call);
    return volumes.map((volume) => ({
      id: requiredText(volume, 'id', request.operation),
      name: stringAt(volume, 'name') ?? '',
      status: stringAt(volume, 'status') ?? '',
      size: numberAt(volume, 'size') ?? 0,
      metadata: textValues(objectAt(volume, 'metadata') ?? {}),
    }));
  }

  async tagVolume(id: string, metadata: Readonly<Record<string, string>>, call: Call): Promise<void> {
    const path = `/volumes/${encodeURIComponent(id)}/metadata`;
    const request: ServiceRequest = { service: 'volume', method: 'POST', operation: 'volume.metadata', path };
    // A page of a proxy does not prove that the volume has the entries.
    memberOf(
      await this.session.requestJson({ ...request, json: { metadata } }, call),
      'metadata',
      'volume: POST metadata',
    );
  }

  async deleteVolume(id: string, call: Call): Promise<void> {
    await this.session.delete('volume', 'volume', `/volumes/${encodeURIComponent(id)}`, call);
  }

  async limits(call: Call): Promise<VolumeLimits> {
    const request = get('limits', '/limits');
    const limits = objectAt(
      memberOf(await this.session.requestJson(request, call), 'limits', request.operation),
      'absolute',
    );
    if (limits === undefined) throw new TransientError('volume: GET limits: the answer has no absolute limits');
    return {
      volumes: numberAt(limits, 'maxTotalVolumes') ?? -1,
      gigabytes: numberAt(limits, 'maxTotalVolumeGigabytes') ?? -1,
    };
  }
}

function get(operation: string, path: string): ServiceRequest {
  return { service: 'volume', method: 'GET', operation, path };
}
