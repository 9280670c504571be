/** Calls, launches, deletions and uploads as a launcher and a builder request them. */

import {
  silentLogger,
  type Call,
  type Clock,
  type ExternalId,
  type ImageTags,
  type ImageUploadRequest,
  type InstanceTags,
  type NodeCleanup,
  type NodeLaunch,
  type ProviderConfig,
  type RequestInfo,
} from '@nodepool/core';
import { firstLabel, imageNames } from './provider-config.js';

/** Id of the installation that owns the nodes and images of tests. */
export const INSTALLATION = '0123456789abcdef';

/** Returns a call with a deadline, by default one minute from now. */
export function callOn(clock: Clock, timeoutMs = 60_000, signal: Call['signal'] = new AbortController().signal): Call {
  return { signal, deadline: clock.monotonic() + timeoutMs, log: silentLogger };
}

export function requestFor(...labels: readonly string[]): RequestInfo {
  return {
    id: '200-0000000001',
    labels,
    requestor: 'zuul',
    requestorData: { job: 'unit' },
    relativePriority: 0,
    eventId: null,
    createdTime: null,
    tenantName: 'acme',
  };
}

/** Returns the tags of a node's instance in the first pool of the provider. */
export function instanceTags(config: ProviderConfig, nodeId: string, attempt = attemptOf(nodeId)): InstanceTags {
  return {
    nodepool_node_id: nodeId,
    nodepool_provider_name: config.name,
    nodepool_pool_name: firstLabel(config).pool.name,
    nodepool_installation: INSTALLATION,
    nodepool_launch_attempt: attempt,
  };
}

/** Returns the launch attempt that tests use unless they name another one. */
function attemptOf(nodeId: string): string {
  return `attempt-of-${nodeId}`;
}

/** Returns a launch of the first label; `change` overrides properties. */
export function nodeLaunch(
  config: ProviderConfig,
  call: Call,
  nodeId: string,
  change: Partial<NodeLaunch> = {},
): NodeLaunch {
  const { pool, label } = firstLabel(config);
  return {
    ...call,
    nodeId,
    hostname: `np${nodeId}`,
    pool: pool.name,
    label: label.name,
    availabilityZone: undefined,
    imageExternalId: undefined,
    tags: instanceTags(config, nodeId),
    saved: null,
    externalId: null,
    save: async () => undefined,
    ...change,
  };
}

/** Returns a deletion of a node; `change` overrides properties. */
export function nodeCleanup(
  config: ProviderConfig,
  call: Call,
  nodeId: string,
  externalId: ExternalId | null,
  change: Partial<NodeCleanup> = {},
): NodeCleanup {
  return {
    ...call,
    nodeId,
    pool: firstLabel(config).pool.name,
    externalId,
    installation: INSTALLATION,
    launchAttempt: attemptOf(nodeId),
    saved: null,
    save: async () => undefined,
    ...change,
  };
}

/** Returns the tags of an upload of the provider's first disk image. */
export function imageTags(config: ProviderConfig): ImageTags {
  return {
    nodepool_installation: INSTALLATION,
    nodepool_provider_name: config.name,
    nodepool_image_name: firstImage(config),
    nodepool_build_id: 'b1',
    nodepool_upload_id: '0000000001',
    nodepool_image_format: config.imageFormat ?? 'raw',
  };
}

/** Returns an upload of a file without checksums; `change` overrides properties. */
export function imageUpload(
  config: ProviderConfig,
  call: Call,
  file: string,
  change: Partial<ImageUploadRequest> = {},
): ImageUploadRequest {
  const image = firstImage(config);
  return {
    ...call,
    image,
    externalName: `${image}-1`,
    file,
    format: config.imageFormat ?? 'raw',
    md5: null,
    sha256: null,
    metadata: {},
    tags: imageTags(config),
    progress: () => undefined,
    ...change,
  };
}

function firstImage(config: ProviderConfig): string {
  return imageNames(config.section)[0] ?? 'debian';
}
