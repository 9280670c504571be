/** Parses the body of a server creation and looks up everything that it names, as nova's API does before it answers. */

import type { JsonObject, JsonValue } from '@nodepool/core';
import { textOf, type Caller } from '../http/request-context.js';
import { ZONE } from '../settings.js';
import type { CloudImages } from '../image/images.js';
import { type NetworkStore, isOf } from '../network/networks.js';
import type { VolumeStore } from '../volume/volumes.js';
import { computeError } from './errors.js';
import { objectsOf } from './read-server.js';
import type { BootVolume, Flavor, KeyPair, ServerSpec } from './records.js';

const GIB = 2 ** 30;
/** Maximum number of entries in the metadata of a server (default quota of nova). */
const METADATA_ITEMS = 128;

/** Stores for the lookups. */
export interface ServerContext {
  readonly flavors: readonly Flavor[];
  readonly keyPairs: readonly KeyPair[];
  readonly images: CloudImages;
  readonly networks: NetworkStore;
  readonly volumes: VolumeStore;
}

/** Throws an API error if a named resource does not exist. */
export function newServer(server: JsonObject, caller: Caller, there: ServerContext): ServerSpec {
  const flavorRef = textOf(server['flavorRef'], '');
  const flavor = there.flavors.find(({ id }) => id === flavorRef);
  const bootVolume = bootVolumeOf(server, caller, there);
  const imageId = imageOf(server['imageRef'], bootVolume !== null, caller, there);
  if (flavor === undefined) throw computeError(400, `Flavor ${flavorRef} could not be found.`);
  checkFlavor(flavor, imageId, bootVolume, there);
  const zone = textOrNull(server['availability_zone']);
  if (zone !== null && zone !== ZONE) throw computeError(400, 'The requested availability zone is not available');
  const groups = groupsOf(server, caller, there);
  const metadata = server['metadata'] === undefined ? {} : { ...(server['metadata'] as Record<string, string>) };
  if (Object.keys(metadata).length > METADATA_ITEMS) {
    throw computeError(403, `Maximum number of metadata items exceeds ${METADATA_ITEMS}`);
  }
  return {
    name: textOf(server['name'], ''),
    flavor,
    imageId,
    bootVolume,
    imageProperties: imagePropertiesOf(imageId, bootVolume, there),
    metadata,
    keyName: keyNameOf(server, caller, there),
    userData: textOrNull(server['user_data']),
    configDrive: server['config_drive'] === true || server['config_drive'] === 'true',
    availabilityZone: zone,
    securityGroups: groups.map(({ name }) => name),
    securityGroupIds: groups.map(({ id }) => id),
    interfaces: interfacesOf(server['networks'], caller, there),
    tags: Array.isArray(server['tags']) ? server['tags'].map(String) : [],
    description: textOrNull(server['description']),
    minCount: Number(server['min_count'] ?? server['max_count'] ?? 1),
  };
}

/** Returns the properties of the image; those that cinder has copied if the server boots from an existing volume. */
function imagePropertiesOf(
  imageId: string | null,
  bootVolume: BootVolume | null,
  { images, volumes }: ServerContext,
): ReadonlyMap<string, string> {
  const source = bootVolume?.source;
  if (source !== undefined && 'volumeId' in source) {
    return volumes.table.get(source.volumeId)?.imageProperties ?? new Map<string, string>();
  }
  return new Map(images.table.get(source?.imageId ?? imageId ?? '')?.properties);
}

/** Throws an API error if the image needs more than the flavor or the volume has. */
function checkFlavor(
  flavor: Flavor,
  imageId: string | null,
  bootVolume: BootVolume | null,
  { images }: ServerContext,
): void {
  const source = bootVolume?.source;
  const volume = source !== undefined && 'sizeGb' in source ? source : undefined;
  const image = images.table.get(volume?.imageId ?? imageId ?? '');
  if (image === undefined) return;
  if (flavor.ram < image.minRam) throw computeError(400, "Flavor's memory is too small for requested image.");
  const minBytes = image.minDisk * GIB;
  if (bootVolume !== null) {
    const bytes = (volume?.sizeGb ?? Infinity) * GIB;
    if (minBytes <= bytes) return;
    const sizes = `Volume size is ${bytes} bytes, minimum size is ${minBytes} bytes.`;
    throw computeError(400, `Volume is smaller than the minimum size specified in image metadata. ${sizes}`);
  }
  const bytes = flavor.disk * GIB;
  if (bytes === 0) throw computeError(403, 'Only volume-backed servers are allowed for flavors with zero disk.');
  if ((image.size ?? 0) > bytes) {
    const sizes = `Flavor disk is ${bytes} bytes, image is ${image.size} bytes.`;
    throw computeError(400, `Flavor's disk is too small for requested image. ${sizes}`);
  }
  if (minBytes > bytes) {
    const sizes = `Flavor disk is ${bytes} bytes, minimum size is ${minBytes} bytes.`;
    throw computeError(400, `Flavor's disk is smaller than the minimum size specified in image metadata. ${sizes}`);
  }
}

function textOrNull(value: JsonValue | undefined): string | null {
  return typeof value === 'string' ? value : null;
}

function imageOf(ref: JsonValue | undefined, fromVolume: boolean, caller: Caller, there: ServerContext): string | null {
  if (ref === undefined && !fromVolume) throw computeError(400, 'Missing imageRef attribute');
  if (ref === undefined || (ref === '' && fromVolume)) return null;
  return activeImage(textOf(ref, ''), caller, there);
}

function activeImage(id: string, caller: Caller, there: ServerContext): string {
  const image = there.images.visible(id, caller);
  if (image === undefined) throw computeError(400, 'Can not find requested image');
  if (image.status !== 'active') throw computeError(400, `Image ${id} is not active.`);
  return id;
}

function bootVolumeOf(server: JsonObject, caller: Caller, there: ServerContext): BootVolume | null {
  const mappings = objectsOf(server['block_device_mapping_v2'], 'block_device_mapping_v2');
  const boot = mappings.find((mapping) => Number(mapping['boot_index']) === 0);
  if (boot?.['destination_type'] !== 'volume') return null;
  const id = textOf(boot['uuid'], '');
  const deleteOnTermination = boot['delete_on_termination'] === true;
  if (boot['source_type'] === 'image') {
    const sizeGb = Number(boot['volume_size']);
    if (!Number.isInteger(sizeGb) || sizeGb < 1) {
      throw computeError(400, 'Block Device Mapping is Invalid: image volume size is not specified');
    }
    return { source: { imageId: activeImage(id, caller, there), sizeGb }, deleteOnTermination };
  }
  const volume = there.volumes.table.get(id);
  if (volume === undefined || volume.project !== caller.projectId) {
    throw computeError(400, `Block Device Mapping is Invalid: failed to get volume ${id}.`);
  }
  return { source: { volumeId: id }, deleteOnTermination };
}

function keyNameOf(server: JsonObject, caller: Caller, there: ServerContext): string | null {
  const name = textOrNull(server['key_name']);
  if (name === null) return null;
  const known = there.keyPairs.some((pair) => pair.name === name && pair.userId === caller.userId);
  if (!known) throw computeError(400, 'Invalid key_name provided.');
  return name;
}

function groupsOf(
  server: JsonObject,
  caller: Caller,
  there: ServerContext,
): readonly { readonly id: string; readonly name: string }[] {
  const asked = objectsOf(server['security_groups'], 'security_groups').map(({ name }) => textOf(name, ''));
  const own = [...there.networks.securityGroups.all()].filter((group) => group.project === caller.projectId);
  return [...new Set(asked.length === 0 ? ['default'] : asked)].map((wanted) => {
    const named = own.filter(({ name }) => name === wanted);
    const group = own.find(({ id }) => id === wanted) ?? named[0];
    if (group?.id !== wanted && named.length > 1) {
      throw computeError(409, `Multiple security groups found matching '${wanted}'. Use an ID to be more specific.`);
    }
    if (group !== undefined) return { id: group.id, name: wanted };
    throw computeError(400, `Unable to find security_group with name or id '${wanted}'`);
  });
}

function interfacesOf(
  networks: JsonValue | undefined,
  caller: Caller,
  { networks: store }: ServerContext,
): ServerSpec['interfaces'] {
  if (networks === 'none') return [];
  if (networks === undefined || networks === 'auto') {
    const own = [...store.networks.all()].filter(({ project, external }) => project === caller.projectId && !external);
    if (own.length > 1) {
      throw computeError(409, 'Multiple possible networks found, use a Network ID to be more specific.');
    }
    return own.map(({ id }) => ({ networkId: id }));
  }
  return objectsOf(networks, 'networks').map((entry) => {
    if (typeof entry['port'] === 'string') return { portId: freePort(entry['port'], caller, store) };
    const id = textOf(entry['uuid'], '');
    const network = store.networks.get(id);
    if (network !== undefined && (isOf(network, caller) || network.shared || network.external))
      return { networkId: id };
    throw computeError(400, `Network ${id} could not be found.`);
  });
}

function freePort(id: string, caller: Caller, store: NetworkStore): string {
  const port = store.ports.get(id);
  if (port === undefined || !isOf(port, caller)) throw computeError(400, `Port id ${id} could not be found.`);
  if (port.deviceId !== '') throw computeError(409, `Port ${id} is still in use.`);
  return id;
}
