/** What the compute service is asked to make for a node. */

import type { CreateRequest, JsonObject } from '@nodepool/core';
import { METADATA_MAX_BYTES, type OpenStackLabel } from './config.js';

/** What the names of a label were found to be. */
export interface Found {
  readonly flavorId: string;
  readonly imageId: string;
  readonly networkIds: readonly string[];
}

/** Body of `server` in `POST /servers`. */
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

/** A disk of the host, or a volume that is made from the image and deleted with the server. */
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

/** Properties of the configuration can replace `groups`, but never the tags. */
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

/** Data of a request can be longer than the cloud takes; a launch must not fail for that. */
function cut(text: string): string {
  if (Buffer.byteLength(text) <= METADATA_MAX_BYTES) return text;
  const bytes = Buffer.from(text).subarray(0, METADATA_MAX_BYTES);
  // A character that was cut in two is left out.
  return new TextDecoder().decode(bytes, { stream: true });
}
