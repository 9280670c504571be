/** Builds the compute service's creation request for a node. */

import type { CreateRequest, JsonObject } from '@nodepool/core';
import { METADATA_MAX_BYTES, type OpenStackLabel } from './config.js';

/** The resources that a label's names resolve to. */
export interface Found {
  readonly flavorId: string;
  readonly imageId: string;
  readonly networkIds: readonly string[];
}

/** Returns the body of `server` in `POST /servers`. */
export function serverSpec(
  request: CreateRequest<OpenStackLabel>,
  provider: string,
  { flavorId, imageId, networkIds }: Found,
): JsonObject {
  const { hostname, label, availabilityZone } = request;
  return {
    name: hostname,
    flavorRef: flavorId,
    ...diskOf(label, imageId),
    metadata: metadataOf(request, provider),
    ...(networkIds.length === 0 ? {} : { networks: networkIds.map((uuid) => ({ uuid })) }),
    ...(label.securityGroups.length === 0 ? {} : { security_groups: label.securityGroups.map((name) => ({ name })) }),
    ...(label.keyName === undefined ? {} : { key_name: label.keyName }),
    ...(label.userData === undefined ? {} : { user_data: label.userData }),
    ...(label.configDrive === undefined ? {} : { config_drive: label.configDrive }),
    ...(availabilityZone === undefined ? {} : { availability_zone: availabilityZone }),
  };
}

/** Describes the server's disk: a local one, or a volume that is created from the image and deleted with the server. */
function diskOf({ volumeSize }: OpenStackLabel, imageId: string): JsonObject {
  if (volumeSize === undefined) return { imageRef: imageId };
  const volume = {
    boot_index: 0,
    source_type: 'image',
    uuid: imageId,
    destination_type: 'volume',
    volume_size: volumeSize,
    delete_on_termination: true,
  };
  return { imageRef: '', block_device_mapping_v2: [volume] };
}

/** Returns the metadata. Configured properties can override `groups`, but never the tags. */
function metadataOf({ label, request, tags }: CreateRequest<OpenStackLabel>, provider: string): JsonObject {
  const dynamic: Record<string, string> = {};
  for (const [key, template] of label.dynamicInstanceProperties) dynamic[key] = cut(template.render(request));
  return {
    groups: cut([provider, label.image.name, label.name].join(',')),
    ...label.instanceProperties,
    ...dynamic,
    ...tags,
  };
}

/** Truncates data of a request to the cloud's limit, so that it cannot make a launch fail. */
function cut(text: string): string {
  if (Buffer.byteLength(text) <= METADATA_MAX_BYTES) return text;
  const bytes = Buffer.from(text).subarray(0, METADATA_MAX_BYTES);
  // Streaming mode drops a truncated character at the end.
  return new TextDecoder().decode(bytes, { stream: true });
}
