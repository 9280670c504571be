/**
 * From an instance as the cloud describes it to one as core knows it.
 *
 * `ready` is the promise that matters: the instance runs and has all its addresses. Whether one can log in is not the
 * driver's business; the launcher tries that.
 */

import type { Instance } from '@nodepool/core';
import type { CloudInstance } from './cloud/types.js';

export function instanceOf(instance: CloudInstance): Instance {
  return {
    externalId: instance.id,
    ready: instance.state === 'running',
    // As long as an instance is being deleted it uses up quota: it is not gone before the cloud does not list it any more.
    deleted: instance.state === 'deleted',
    failed: failureOf(instance),
    tags: instance.tags,
    interfaceIp: instance.publicIpv4,
    publicIpv4: instance.publicIpv4,
    privateIpv4: instance.privateIpv4,
    publicIpv6: instance.publicIpv6,
    cloud: 'example',
    az: instance.zone,
    resources: { instances: 1, cores: instance.cores, ram: instance.ram },
    // Only the cloud knows on which port an instance of it listens.
    connection: instance.sshPort === null ? undefined : { port: instance.sshPort },
  };
}

function failureOf({ state, failure }: CloudInstance): string | undefined {
  if (state === 'failed') return failure ?? 'the cloud does not say why';
  return state === 'deleting' ? 'it is being deleted' : undefined;
}
