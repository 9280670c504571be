/** Converts between instances of the cloud and instances of Nodepool. */

import { NotFoundError, type CreateRequest, type ExternalId, type Instance } from '@nodepool/core';
import type { MyCloudLabel } from './config.js';
import type { InstanceSpec, TinyInstance } from './tiny-cloud.js';

/**
 * Converts an instance of the cloud. `ready` states that the instance runs and has its addresses; the launcher verifies
 * the login.
 */
export function instanceOf(instance: TinyInstance): Instance {
  return {
    externalId: instance.id,
    ready: instance.state === 'running',
    // While the cloud lists the instance, it exists and uses quota.
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
 * Returns the specification of the instance to create. The tags must be part of the create call: an instance that is
 * tagged later is lost if the launcher stops before tagging it.
 */
export function specOf({ hostname, label, tags }: CreateRequest<MyCloudLabel>): InstanceSpec {
  return { name: hostname, image: label.cloudImage, cores: label.cores, ram: label.ram, tags: { ...tags } };
}

/** Returns the external id as a string, the form that this cloud uses. */
export function idOf(externalId: ExternalId): string {
  if (typeof externalId === 'string') return externalId;
  throw new NotFoundError(`${JSON.stringify(externalId)} is not the id of an instance of mycloud`);
}

function failureOf({ state }: TinyInstance): string | undefined {
  if (state === 'failed') return 'its state is "failed"';
  return state === 'deleting' ? 'it is being deleted' : undefined;
}
