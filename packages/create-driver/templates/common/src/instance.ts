/** From an instance as the cloud describes it to one as Nodepool knows it, and back. */

import { NotFoundError, type CreateRequest, type ExternalId, type Instance } from '@nodepool/core';
import type { MyCloudLabel } from './config.js';
import type { InstanceSpec, TinyInstance } from './tiny-cloud.js';

/** `ready` is a promise: the instance runs and has its addresses. Whether one can log in is tried by the launcher. */
export function instanceOf(instance: TinyInstance): Instance {
  return {
    externalId: instance.id,
    ready: instance.state === 'running',
    // As long as the cloud lists it, it uses up quota, and is not gone.
    deleted: false,
    failed: failureOf(instance),
    tags: instance.tags,
    hostname: instance.name,
    interfaceIp: instance.address,
    publicIpv4: instance.address,
    cloud: 'mycloud',
    resources: { instances: 1, cores: instance.cores, ram: instance.ram },
  };
}

/**
 * What to ask the cloud for. The tags belong into the very call that makes the instance: one without them, even for a
 * moment, is not found again if the launcher dies in that moment.
 */
export function specOf({ hostname, label, tags }: CreateRequest<MyCloudLabel>): InstanceSpec {
  return { name: hostname, image: label.cloudImage, cores: label.cores, ram: label.ram, tags: { ...tags } };
}

/** The id as this cloud writes it. */
export function idOf(externalId: ExternalId): string {
  if (typeof externalId === 'string') return externalId;
  throw new NotFoundError(`${JSON.stringify(externalId)} is no id of an instance of mycloud`);
}

function failureOf({ state }: TinyInstance): string | undefined {
  if (state === 'failed') return 'its state is "failed"';
  return state === 'deleting' ? 'it is being deleted' : undefined;
}
