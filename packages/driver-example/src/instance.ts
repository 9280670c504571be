/**
 * Converts instances of the cloud to instances of core.
 *
 * An instance is `ready` once it runs and has all its addresses. The launcher, not the driver, verifies the login.
 */

import type { Instance } from '@nodepool/core';
import type { CloudInstance } from './cloud/types.js';

export function instanceOf(instance: CloudInstance): Instance {
  return {
    externalId: instance.id,
    hostname: instance.name,
    ready: instance.state === 'running',
    // An instance uses quota while it is being deleted, and counts as deleted only once the deletion is complete.
    deleted: instance.state === 'deleted',
    failed: failureOf(instance),
    tags: instance.tags,
    interfaceIp: instance.publicIpv4,
    publicIpv4: instance.publicIpv4,
    privateIpv4: instance.privateIpv4,
    publicIpv6: instance.publicIpv6,
    cloud: 'example',
    az: instance.zone,
    machine: instance.size === null ? undefined : { type: instance.size },
    resources: { instances: 1, cores: instance.cores, ram: instance.ram },
    // Only the cloud knows the port on which the instance listens.
    connection: instance.sshPort === null ? undefined : { port: instance.sshPort },
  };
}

function failureOf({ state, failure }: CloudInstance): string | undefined {
  if (state === 'failed') return failure ?? 'the cloud gives no reason';
  return state === 'deleting' ? 'it is being deleted' : undefined;
}
