/** What is known of a cloud before it is asked anything: its section in `clouds.yaml`, read and checked. */

import {
  booleanAt,
  ConfigurationError,
  entriesAt,
  isJsonObject,
  objectAt,
  stringAt,
  type JsonObject,
  type JsonValue,
} from '@nodepool/core';
import { findCloud, merged, type Surroundings } from './cloud-files.js';
import { readCredentials, type Credentials } from './credentials.js';

/** The services that this driver uses, by the names of their keys in `clouds.yaml`. */
export const SERVICES = ['compute', 'image', 'network', 'volume'] as const;
export type ServiceName = (typeof SERVICES)[number];

export type EndpointInterface = 'public' | 'internal' | 'admin';

export interface TlsOptions {
  /** False: certificates are not checked. */
  readonly verify: boolean;
  /** Paths of PEM files. */
  readonly cacert: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

/** What `clouds.yaml` says of a service. */
export interface ServiceOptions {
  /** Instead of the catalog's. */
  readonly endpoint: string | undefined;
  /** Instead of the usual ones. */
  readonly serviceType: string | undefined;
  readonly interface: EndpointInterface | undefined;
  /** e.g. `2.72`: the highest microversion to use. */
  readonly microversion: string | undefined;
}

/** What an operator says of a network, where the cloud's own word is misleading. */
export interface NetworkHint {
  /** Name or id. */
  readonly name: string;
  /** Whether its addresses can be reached from outside. */
  readonly routesExternally: boolean | undefined;
  /** Whether floating addresses go to ports on it. */
  readonly natDestination: boolean;
  /** Whether floating addresses come from it. */
  readonly natSource: boolean;
  /** Whether its addresses are the ones to use. */
  readonly defaultInterface: boolean;
}

export interface Cloud {
  readonly name: string;
  /** File that it is from, for messages. */
  readonly source: string;
  readonly credentials: Credentials;
  readonly regionName: string | undefined;
  readonly interface: EndpointInterface;
  readonly tls: TlsOptions;
  readonly imageFormat: string;
  readonly services: Readonly<Record<ServiceName, ServiceOptions>>;
  /** False: the cloud has none, whatever its networks look like. */
  readonly floatingIps: boolean;
  /** Nodes are reached at private addresses, as the launcher is inside the cloud. */
  readonly private: boolean;
  readonly networks: readonly NetworkHint[];
}

const DEFAULT_IMAGE_FORMAT = 'qcow2';

/** Reads what the files and the environment say of a cloud. Throws `ConfigurationError` that names the file and the key. */
export function readCloud(name: string, regionName: string | undefined, where: Surroundings): Cloud {
  const { section: whole, source } = findCloud(name, where);
  const region = regionName ?? stringAt(whole, 'region_name') ?? onlyRegion(whole);
  const section = merged(whole, region === undefined ? {} : valuesOfRegion(whole, region));
  const place = `${source}: cloud ${name}`;
  return {
    name,
    source,
    credentials: readCredentials(section, place),
    regionName: region,
    interface: readInterface(section, 'interface', place) ?? readInterface(section, 'endpoint_type', place) ?? 'public',
    tls: readTls(section, where.home),
    imageFormat: stringAt(section, 'image_format') ?? DEFAULT_IMAGE_FORMAT,
    services: {
      compute: readService(section, ['compute'], place),
      image: readService(section, ['image'], place),
      network: readService(section, ['network'], place),
      volume: readService(section, ['block_storage', 'volumev3', 'volume'], place),
    },
    floatingIps: stringAt(section, 'floating_ip_source')?.toLowerCase() !== 'none',
    private: flagAt(section, 'private') ?? false,
    networks: entriesAt(section, 'networks').map(({ section: network, name: id }) => readNetwork(network, id)),
  };
}

/** Only the format; the usual one when nothing can be read: whoever starts the provider hears why. */
export function imageFormatOf(name: string, regionName: string | undefined, where: Surroundings): string {
  try {
    return readCloud(name, regionName, where).imageFormat;
  } catch (error) {
    if (error instanceof ConfigurationError) return DEFAULT_IMAGE_FORMAT;
    throw error;
  }
}

/** A list of one region needs no choice. */
function onlyRegion(section: JsonObject): string | undefined {
  const regions = section['regions'];
  if (!Array.isArray(regions) || regions.length !== 1) return undefined;
  const [only] = regions as readonly JsonValue[];
  return isJsonObject(only) ? stringAt(only, 'name') : typeof only === 'string' ? only : undefined;
}

/** Regions may have settings of their own: `regions: [{name: …, values: {…}}]`. */
function valuesOfRegion(section: JsonObject, region: string): JsonObject {
  const entry = entriesAt(section, 'regions').find(({ name }) => name === region);
  return entry === undefined ? {} : (objectAt(entry.section, 'values') ?? {});
}

function readService(section: JsonObject, prefixes: readonly string[], place: string): ServiceOptions {
  const at = (key: string): string | undefined =>
    prefixes.map((prefix) => scalarAt(section, `${prefix}_${key}`)).find((value) => value !== undefined);
  const own = prefixes.map((prefix) => readInterface(section, `${prefix}_interface`, place));
  const version = at('default_microversion') ?? at('api_version');
  return {
    endpoint: at('endpoint_override') ?? at('endpoint'),
    serviceType: at('service_type'),
    interface: own.find((value) => value !== undefined),
    // `2` and `2.1` name the API; it is from 2.2 on that a number is a microversion.
    microversion: version !== undefined && /^2\.([2-9]|\d\d+)$/.test(version) ? version : undefined,
  };
}

function readInterface(section: JsonObject, key: string, place: string): EndpointInterface | undefined {
  const value = stringAt(section, key)?.replace(/URL$/, '');
  if (value === undefined || value === 'public' || value === 'internal' || value === 'admin') return value;
  throw new ConfigurationError(`${place}: ${key} is ${JSON.stringify(value)}; expected public, internal or admin`);
}

function readTls(section: JsonObject, home: string): TlsOptions {
  const file = (key: string): string | undefined => stringAt(section, key)?.replace(/^~(?=\/)/, () => home);
  const insecure = flagAt(section, 'insecure') ?? false;
  return {
    verify: (flagAt(section, 'verify') ?? true) && !insecure,
    cacert: file('cacert'),
    cert: file('cert'),
    key: file('key'),
  };
}

function readNetwork(section: JsonObject, name: string): NetworkHint {
  return {
    name,
    routesExternally: booleanAt(section, 'routes_externally') ?? booleanAt(section, 'routes_ipv4_externally'),
    natDestination: booleanAt(section, 'nat_destination') ?? false,
    natSource: booleanAt(section, 'nat_source') ?? false,
    defaultInterface: booleanAt(section, 'default_interface') ?? false,
  };
}

function scalarAt(section: JsonObject, key: string): string | undefined {
  const value = section[key];
  return typeof value === 'number' ? String(value) : stringAt(section, key);
}

/** Flags from the environment are texts. */
function flagAt(section: JsonObject, key: string): boolean | undefined {
  const text = stringAt(section, key)?.toLowerCase();
  if (text === undefined) return booleanAt(section, key);
  return ['true', 'yes', '1', 'on'].includes(text);
}
