/** Rules for the creation of a VM beyond the published types. */

import type { JsonObject } from '@nodepool/core';
import { checkName, checkTags, type Cloud } from './cloud.js';
import { listIn, objectIn, textIn } from './fields.js';
import { notFound, ArmError } from './api-error.js';
import {
  GALLERY_IMAGE,
  PLATFORM_IMAGES,
  SAMPLE,
  SAMPLE_GALLERY,
  SAMPLE_SIZES,
  type SampleImage,
  type SampleSize,
} from './settings.js';

const IMAGE_ID =
  /^\/subscriptions\/[^/]+\/resourceGroups\/[^/]+\/providers\/Microsoft\.Compute\/(images\/[^/]+|galleries\/([^/]+)\/images\/([^/]+)(?:\/versions\/([^/]+))?)$/i;
const SHARED_ID = /^\/(?:Community|Shared)Galleries\/([^/]+)\/Images\/([^/]+)(?:\/Versions\/([^/]+))?$/i;
const IDENTITY_ID =
  /^\/subscriptions\/[^/]+\/resourceGroups\/[^/]+\/providers\/Microsoft\.ManagedIdentity\/userAssignedIdentities\/[^/]+$/i;
const GALLERY_VERSION = /^(latest|\d+\.\d+\.\d+)$/;
const RESERVED_USERS = new Set(['admin', 'administrator', 'root', 'guest', 'test', 'user', 'console']);
const KEY = /^(ssh-rsa|ssh-ed25519) \S+/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const DATA_MAX = 87_380;
const DATA_DISK_ONLY = new Set(['UltraSSD_LRS', 'PremiumV2_LRS']);

type Image = Omit<SampleImage, 'versions'>;

/** Returns the VM's size. Throws if the VM cannot be created. */
export function checkVm(cloud: Cloud, location: string, body: JsonObject): SampleSize {
  const properties = objectIn(body, 'properties');
  const size = sizeOf(properties);
  if (size === undefined) throw invalid('The value of parameter vmSize is invalid.');
  if (size.restricted === true) {
    throw new ArmError(409, 'SkuNotAvailable', `The requested VM size ${size.name} is not available.`);
  }
  const image = imageOf(cloud, properties);
  checkDisk(objectIn(properties, 'storageProfile'), image, size);
  checkLogin(objectIn(properties, 'osProfile'), image);
  checkUserData(properties);
  checkSecurity(properties, image, size);
  checkPriority(properties, size);
  checkIdentity(objectIn(body, 'identity'));
  checkNetwork(objectIn(properties, 'networkProfile'), location);
  return size;
}

export function sizeOf(properties: JsonObject): SampleSize | undefined {
  const name = textIn(objectIn(properties, 'hardwareProfile'), 'vmSize').toLowerCase();
  return SAMPLE_SIZES.find((size) => size.name.toLowerCase() === name);
}

/** Returns the VM's image. Throws if the reference is invalid. */
function imageOf(cloud: Cloud, properties: JsonObject): Image {
  const reference = objectIn(objectIn(properties, 'storageProfile'), 'imageReference');
  const id = textIn(reference, 'id');
  const shared = textIn(reference, 'communityGalleryImageId') || textIn(reference, 'sharedGalleryImageId');
  const publisher = textIn(reference, 'publisher');
  if ([id, shared, publisher].filter((given) => given !== '').length !== 1) {
    throw invalid("Exactly one kind of 'imageReference' is needed.");
  }
  if (publisher !== '') return platformImage(reference);
  if (shared !== '') {
    const [, gallery, name, version] = SHARED_ID.exec(shared) ?? [];
    return galleryImage(shared, gallery, name, version);
  }
  const [, kind = '', gallery, name, version] = IMAGE_ID.exec(id) ?? [];
  if (kind === '' || gallery !== undefined) return galleryImage(id, gallery, name, version);
  const own = cloud.store.get(id);
  if (own === undefined) throw notFound(id);
  const { generation, os } = {
    generation: own.properties['hyperVGeneration'] === 'V2' ? ('V2' as const) : ('V1' as const),
    os: textIn(objectIn(objectIn(own.properties, 'storageProfile'), 'osDisk'), 'osType'),
  };
  const gb = own.properties['diskSizeGB'];
  return {
    generation,
    os: os === 'Windows' ? 'Windows' : 'Linux',
    gb: typeof gb === 'number' ? gb : 1,
    trustedLaunch: false,
  };
}

function platformImage(reference: JsonObject): Image {
  const parts = ['publisher', 'offer', 'sku', 'version'].map((key) => textIn(reference, key));
  const image = PLATFORM_IMAGES[parts.slice(0, 3).join(':').toLowerCase()];
  const version = parts[3] ?? '';
  if (image !== undefined && (version === 'latest' || image.versions.includes(version))) return image;
  throw new ArmError(404, 'PlatformImageNotFound', `The platform image '${parts.join(':')}' is not available.`);
}

function galleryImage(id: string, gallery: string | undefined, name = '', version = 'latest'): Image {
  if (gallery === undefined || !GALLERY_VERSION.test(version)) throw invalid(`The image id '${id}' is malformed.`);
  const known =
    gallery.toLowerCase() === SAMPLE_GALLERY.name &&
    name.toLowerCase() === SAMPLE_GALLERY.image &&
    (version === 'latest' || GALLERY_IMAGE.versions.includes(version));
  if (!known) throw new ArmError(404, 'GalleryImageNotFound', `The gallery image ${id} is not available.`);
  return GALLERY_IMAGE;
}

function checkDisk(storage: JsonObject, image: Image, size: SampleSize): void {
  const disk = objectIn(storage, 'osDisk');
  if (textIn(disk, 'createOption') !== 'FromImage') {
    throw invalid("The value of parameter osDisk.createOption must be 'FromImage' for an image.");
  }
  const name = textIn(disk, 'name');
  if (name !== '') checkName('Microsoft.Compute/disks', name);
  const { diskSizeGB = image.gb } = disk;
  if (typeof diskSizeGB === 'number' && diskSizeGB < image.gb) {
    throw invalid(`The specified disk size ${diskSizeGB} GB is smaller than the size of the image, ${image.gb} GB.`);
  }
  const sku = textIn(objectIn(disk, 'managedDisk'), 'storageAccountType');
  if (DATA_DISK_ONLY.has(sku)) throw invalid(`Storage account type ${sku} is not supported for OS disks.`);
  if (disk['diffDiskSettings'] === undefined) return;
  if (textIn(disk, 'caching') !== 'ReadOnly') {
    throw invalid('OS disk with ephemeral settings must have caching ReadOnly.');
  }
  if (textIn(disk, 'deleteOption') === 'Detach') throw invalid('An ephemeral OS disk cannot be detached.');
  if (sku !== '' && sku !== 'Standard_LRS') throw invalid('An ephemeral OS disk must be of type Standard_LRS.');
  if (Number(diskSizeGB) > size.cacheGb) {
    throw new ArmError(
      409,
      'OperationNotAllowed',
      `OS disk of Ephemeral VM with size greater than ${size.cacheGb} GB is not allowed for VM size ${size.name}.`,
    );
  }
}

function checkLogin(os: JsonObject, image: Image): void {
  const [name, user, password] = ['computerName', 'adminUsername', 'adminPassword'].map((key) => textIn(os, key));
  const limit = image.os === 'Windows' ? 15 : 64;
  if (name === undefined || !/^(?!\d+$)[A-Za-z0-9-]+$/.test(name) || name.length > limit) {
    throw invalid(`The host name '${name ?? ''}' is invalid: letters, digits and '-', at most ${limit} characters.`);
  }
  if (user === undefined || user === '' || RESERVED_USERS.has(user.toLowerCase())) {
    throw invalid('The Admin Username specified is not allowed.');
  }
  const linux = os['linuxConfiguration'];
  if (linux !== undefined && image.os === 'Windows') {
    throw invalid('linuxConfiguration is not allowed for a Windows image.');
  }
  const configuration = objectIn(os, 'linuxConfiguration');
  const keys = listIn(objectIn(configuration, 'ssh'), 'publicKeys');
  const path = `/home/${user}/.ssh/authorized_keys`;
  if (keys.some((key) => textIn(key, 'path') !== path || !KEY.test(textIn(key, 'keyData')))) {
    throw invalid(`Keys must be in ssh format, at ${path}.`);
  }
  if (password === undefined || password === '') {
    if (keys.length === 0) throw invalid("Required parameter 'adminPassword' is missing (null).");
    if (configuration['disablePasswordAuthentication'] !== true) {
      throw invalid("Authentication using SSH keys needs 'disablePasswordAuthentication'.");
    }
    return;
  }
  const kinds = [/[a-z]/, /[A-Z]/, /\d/, /[^A-Za-z0-9]/].filter((kind) => kind.test(password)).length;
  if (password.length >= 8 && password.length <= 123 && kinds >= 3) return;
  throw invalid(
    'The supplied password must be between 8-123 characters long and must satisfy at least 3 of password complexity requirements.',
  );
}

function checkUserData(properties: JsonObject): void {
  const data = [textIn(properties, 'userData'), textIn(objectIn(properties, 'osProfile'), 'customData')];
  if (data.some((text) => !BASE64.test(text) || text.length > DATA_MAX)) {
    throw invalid('Custom data and user data must be in Base64 encoding, of at most 65535 bytes.');
  }
}

function checkSecurity(properties: JsonObject, image: Image, size: SampleSize): void {
  if (!size.generations.includes(image.generation)) {
    const generation = image.generation.slice(1);
    const message = `The selected VM size '${size.name}' cannot boot Hypervisor Generation '${generation}'.`;
    throw new ArmError(400, 'BadRequest', message);
  }
  const security = objectIn(properties, 'securityProfile');
  const type = textIn(security, 'securityType');
  if (security['uefiSettings'] !== undefined && type === '') {
    throw invalid("'uefiSettings' are allowed only if securityType is set.");
  }
  const lacking = !image.trustedLaunch || image.generation === 'V1' || !size.generations.includes('V2');
  if (type === 'TrustedLaunch' && lacking) {
    throw new ArmError(400, 'BadRequest', 'Use of TrustedLaunch setting is not supported for the provided image.');
  }
}

function checkPriority(properties: JsonObject, size: SampleSize): void {
  const spot = ['Spot', 'Low'].includes(textIn(properties, 'priority'));
  if (spot && !size.spot) throw invalid(`The VM size ${size.name} does not support spot VMs.`);
  if (!spot && (properties['evictionPolicy'] !== undefined || properties['billingProfile'] !== undefined)) {
    throw invalid('evictionPolicy and billingProfile are allowed for spot VMs only.');
  }
  const price = objectIn(properties, 'billingProfile')['maxPrice'];
  if (typeof price === 'number' && price !== -1 && price <= 0) throw invalid('maxPrice must be -1 or above 0.');
}

function checkIdentity(identity: JsonObject): void {
  const ids = Object.keys(objectIn(identity, 'userAssignedIdentities'));
  if (ids.some((id) => !IDENTITY_ID.test(id)) || ids.length > 0 !== textIn(identity, 'type').includes('UserAssigned')) {
    throw new ArmError(400, 'InvalidIdentityValues', 'Invalid value for the identities.');
  }
}

function checkNetwork(network: JsonObject, location: string): void {
  const interfaces = listIn(network, 'networkInterfaceConfigurations');
  if (interfaces.length === 0) throw invalid('The VM must have at least one network interface.');
  if (network['networkApiVersion'] === undefined) {
    throw invalid("Required parameter 'networkApiVersion' is missing (null).");
  }
  for (const nic of interfaces) {
    checkName('Microsoft.Network/networkInterfaces', textIn(nic, 'name'));
    checkTags(nic['tags']);
    const configurations = listIn(objectIn(nic, 'properties'), 'ipConfigurations');
    const versions = configurations.map((one) => versionOf(objectIn(one, 'properties')));
    const primary = configurations.find((one) => objectIn(one, 'properties')['primary'] === true) ?? configurations[0];
    if (!versions.includes('IPv4') || versionOf(objectIn(primary ?? {}, 'properties')) !== 'IPv4') {
      throw new ArmError(400, 'InvalidRequestFormat', 'The primary IP configuration of an interface must be IPv4.');
    }
    if (new Set(versions).size !== versions.length && configurations.length > 1) {
      throw new ArmError(400, 'InvalidRequestFormat', 'The simulation has one IP configuration per version.');
    }
    for (const one of configurations) checkAddress(objectIn(one, 'properties'), location);
  }
}

function checkAddress(properties: JsonObject, location: string): void {
  const subnet = textIn(objectIn(properties, 'subnet'), 'id');
  const known = `/virtualNetworks/${SAMPLE.network}/subnets/${SAMPLE.subnet}`.toLowerCase();
  if (!subnet.toLowerCase().endsWith(known) || location !== SAMPLE.location) {
    throw new ArmError(400, 'InvalidResourceReference', `Resource ${subnet} referenced by the VM was not found.`);
  }
  if (properties['publicIPAddressConfiguration'] === undefined) return;
  const wanted = objectIn(properties, 'publicIPAddressConfiguration');
  const details = objectIn(wanted, 'properties');
  checkName('Microsoft.Network/publicIPAddresses', textIn(wanted, 'name'));
  checkTags(wanted['tags']);
  // Azure retired Basic addresses, the default without a SKU, on 30 September 2025.
  if (textIn(objectIn(wanted, 'sku'), 'name') !== 'Standard') {
    const message =
      'Cannot create more than 0 IPv4 Basic SKU public IP addresses for this subscription in this region.';
    throw new ArmError(400, 'IPv4BasicSkuPublicIpCountLimitReached', message);
  }
  if (textIn(details, 'publicIPAllocationMethod') !== 'Static') {
    const message = 'Standard sku publicIp must have AllocationMethod set to Static.';
    throw new ArmError(400, 'PublicIPAndLBSkuDoNotMatch', message);
  }
  const version = textIn(details, 'publicIPAddressVersion') || 'IPv4';
  if (version !== versionOf(properties)) {
    throw new ArmError(400, 'IpConfigAndPublicIpAddressVersionMismatch', 'The versions of the addresses differ.');
  }
}

function versionOf(properties: JsonObject): string {
  return textIn(properties, 'privateIPAddressVersion') || 'IPv4';
}

function invalid(message: string): ArmError {
  return new ArmError(400, 'InvalidParameter', message);
}
