/** Compute Engine's rules for creation requests beyond the published types. */

import { GceError, invalid, notFound } from './api-error.js';
import { labelProblem, messageAt, messagesAt, NAME, textAt, textsAt, type Message } from './messages.js';
import {
  ACCELERATOR_TYPES,
  DISK_TYPES,
  machineTypesIn,
  NETWORKS,
  SUBNETWORKS,
  type MachineTypeSpec,
} from './settings.js';

const METADATA_KEY = /^[a-zA-Z0-9_-]{1,128}$/;
const METADATA_VALUE_BYTES = 256 * 1024;
const METADATA_TOTAL_BYTES = 512 * 1024;
const MAX_LABELS = 64;
const MIN_DISK_GB = 10;
const REQUEST_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Throws unless the request id is absent or a UUID other than zero. */
export function checkRequestId(requestId: string | undefined): void {
  if (requestId === undefined || (REQUEST_ID.test(requestId) && !/^[0-]+$/.test(requestId))) return;
  throw invalid(`Invalid value for field 'requestId': '${requestId}'. Request id must be a valid UUID.`);
}

/** Returns the size of an image in GB. Throws if the path has no image. */
export type SizeOfImage = (path: string) => number;

/** Returns the instance's machine type. Throws if the instance cannot be created. */
export function checkInstance(project: string, zone: string, body: Message, sizeOfImage: SizeOfImage): MachineTypeSpec {
  const name = textAt(body, 'name') ?? '';
  if (!NAME.test(name)) throw refused('name', name);
  const labels = textsAt(body, 'labels');
  const wrong = labelProblem(labels);
  if (wrong !== undefined) throw invalid(wrong);
  if (Object.keys(labels).length > MAX_LABELS) throw refused('labels', '', `at most ${MAX_LABELS} labels are allowed`);
  const typeName = inZone(body, 'machineType', 'machineTypes', zone);
  const type = machineTypesIn(zone).find((each) => each.name === typeName);
  if (type === undefined) throw refused('machineType', typeName, `The machine type does not exist in zone '${zone}'.`);
  checkDisks(messagesAt(body, 'disks'), zone, sizeOfImage);
  checkNetworks(messagesAt(body, 'networkInterfaces'), project, zone);
  checkMetadata(messagesAt(messageAt(body, 'metadata'), 'items'));
  checkScheduling(messageAt(body, 'scheduling'));
  checkAccelerators(body, type, zone);
  return type;
}

function checkDisks(disks: readonly Message[], zone: string, sizeOfImage: SizeOfImage): void {
  if (disks[0]?.['boot'] !== true) throw refused('disks[0]', '', 'a boot disk is needed');
  for (const disk of disks) {
    const parameters = messageAt(disk, 'initializeParams');
    const image = textAt(parameters, 'sourceImage');
    if (disk['boot'] === true && image === undefined) throw refused('disks[0].initializeParams.sourceImage', '');
    if (textAt(parameters, 'diskType') !== undefined) {
      const type = inZone(parameters, 'diskType', 'diskTypes', zone);
      if (!DISK_TYPES.includes(type)) throw refused('disks[0].initializeParams.diskType', type);
    }
    const wrong = labelProblem(textsAt(parameters, 'labels'));
    if (wrong !== undefined) throw invalid(wrong);
    const imageGb = image === undefined ? 0 : sizeOfImage(image);
    const gb = Number(textAt(parameters, 'diskSizeGb') ?? imageGb);
    if (gb < imageGb) {
      const reason = `Requested disk size cannot be smaller than the image size (${imageGb} GB)`;
      throw refused('disks[0].initializeParams.diskSizeGb', String(gb), reason);
    }
    if (gb < MIN_DISK_GB) throw refused('disks[0].initializeParams.diskSizeGb', String(gb), 'The size is too small');
  }
}

function checkNetworks(interfaces: readonly Message[], project: string, zone: string): void {
  if (interfaces.length === 0) throw refused('networkInterfaces', '', 'At least one network interface is required');
  const region = zone.replace(/-[a-z]$/, '');
  for (const each of interfaces) {
    const [networkPath, subnetworkPath] = [textAt(each, 'network'), textAt(each, 'subnetwork')];
    // Compute Engine uses the default network if neither is specified; a custom-mode network requires its subnetwork.
    const network = /(?:^|\/)global\/networks\/([^/]+)$/.exec(networkPath ?? 'global/networks/default')?.[1] ?? '';
    if (!NETWORKS.includes(network)) throw notFound(`projects/${project}/global/networks/${network}`);
    if (subnetworkPath === undefined) continue;
    const [, host = project, subnetRegion, subnetName] =
      /^(?:(?:https:\/\/[^/]+\/compute\/v1\/)?projects\/([^/]+)\/)?regions\/([^/]+)\/subnetworks\/([^/]+)$/.exec(
        subnetworkPath,
      ) ?? [];
    const at = 'networkInterfaces[0].subnetwork';
    const subnetwork = SUBNETWORKS.find((known) => known.name === subnetName && known.project === host);
    if (subnetwork === undefined)
      throw refused(at, subnetworkPath, 'The referenced subnetwork resource cannot be found');
    if (subnetRegion !== region) throw refused(at, subnetworkPath, `The subnetwork is not in region ${region}`);
    const networkHost = /projects\/([^/]+)\//.exec(networkPath ?? '')?.[1] ?? project;
    if (networkPath !== undefined && (network !== subnetwork.network || networkHost !== subnetwork.project)) {
      throw refused(at, subnetworkPath, `The specified subnetwork is not in network ${networkPath}`);
    }
  }
}

function checkMetadata(items: readonly Message[]): void {
  const keys = items.map((item) => textAt(item, 'key') ?? '');
  const wrong = keys.find((key, index) => !METADATA_KEY.test(key) || keys.indexOf(key) !== index);
  if (wrong !== undefined)
    throw refused('metadata.items.key', wrong, 'Metadata keys are unique and match [a-zA-Z0-9-_]');
  const sizes = items.map((item) => Buffer.byteLength(textAt(item, 'value') ?? ''));
  const total = sizes.reduce((sum, size) => sum + size, 0);
  if (total > METADATA_TOTAL_BYTES || sizes.some((size) => size > METADATA_VALUE_BYTES)) {
    throw refused('metadata', '', 'The metadata is too large');
  }
}

function checkScheduling(scheduling: Message): void {
  const { preemptible, automaticRestart, onHostMaintenance, provisioningModel, instanceTerminationAction } = scheduling;
  const spot = provisioningModel === 'SPOT';
  if (preemptible === true || spot) {
    if (automaticRestart === true) {
      throw invalid('Scheduling must have preemptible be false when AutomaticRestart is true.');
    }
    if (onHostMaintenance === 'MIGRATE') {
      throw invalid('Scheduling must have preemptible be false when OnHostMaintenance is MIGRATE.');
    }
  }
  if (preemptible === true && provisioningModel === 'STANDARD') {
    throw invalid('Scheduling must have preemptible be false when provisioning model is STANDARD.');
  }
  if (instanceTerminationAction !== undefined && !spot) {
    throw invalid(
      'You cannot specify a termination action for a VM instance that has the standard provisioning model.',
    );
  }
}

function checkAccelerators(body: Message, { accelerators: builtIn = [] }: MachineTypeSpec, zone: string): void {
  const attached = messagesAt(body, 'guestAccelerators');
  for (const accelerator of attached) {
    const type = inZone(accelerator, 'acceleratorType', 'acceleratorTypes', zone);
    if (!ACCELERATOR_TYPES.includes(type)) throw refused('guestAccelerators[0].acceleratorType', type);
  }
  const { onHostMaintenance } = messageAt(body, 'scheduling');
  if (attached.length + builtIn.length > 0 && onHostMaintenance !== 'TERMINATE') {
    throw new GceError(400, 'badRequest', 'Instances with guest accelerators do not support live migration.');
  }
}

/** Returns the name in a zonal path. Throws if it belongs to another zone. */
function inZone(body: Message, key: string, collection: string, zone: string): string {
  const path = textAt(body, key) ?? '';
  const pattern = new RegExp(
    `^(?:(?:https?://[^/]+/compute/v1/)?projects/[^/]+/)?zones/([^/]+)/${collection}/([^/]+)$`,
  );
  const [, at, name] = pattern.exec(path) ?? [];
  if (name === undefined) throw refused(key, path, 'The URL is malformed.');
  if (at !== zone) throw refused(key, path, `The resource is not in zone ${zone}`);
  return name;
}

function refused(field: string, value: string, reason = ''): Error {
  return invalid(`Invalid value for field 'resource.${field}': '${value}'. ${reason}`.trim());
}
