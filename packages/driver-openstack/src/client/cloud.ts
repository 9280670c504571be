/** Reads and validates the section of a cloud in `clouds.yaml` without contacting the cloud. */

import type { JsonObject, JsonValue } from '@nodepool/core';
import { booleanAt, ConfigurationError, entriesAt, isJsonObject, objectAt, stringAt } from '@nodepool/core';
import { findCloud, merged, type Environment } from './cloud-files.js';
import { readCredentials, type Credentials } from './credentials.js';

/** Services that this driver uses, by the prefix of their keys in `clouds.yaml`. */
export const SERVICES = ['compute', 'image', 'network', 'volume'] as const;
export type ServiceName = (typeof SERVICES)[number];

export type EndpointInterface = 'public' | 'internal' | 'admin';

export interface TlsOptions {
  /** If false, certificates are not verified. */
  readonly verify: boolean;
  /** Paths of PEM files. */
  readonly cacert: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

export interface ServiceOptions {
  /** Overrides the endpoint of the catalog. */
  readonly endpoint: string | undefined;
  /** Overrides the usual service types. */
  readonly serviceType: string | undefined;
  readonly interface: EndpointInterface | undefined;
  /** Highest microversion to use, e.g. `2.72`. */
  readonly microversion: string | undefined;
}

/** Network settings from the operator, which override misleading properties in the cloud. */
export interface NetworkHint {
  /** Name or id. */
  readonly name: string;
  /** True if its addresses can be reached from outside. */
  readonly routesExternally: boolean | undefined;
  /** True if floating addresses are attached to ports on this network. */
  readonly natDestination: boolean;
  /** True if floating addresses are allocated from this network. */
  readonly natSource: boolean;
  /** True if its addresses are preferred. */
  readonly defaultInterface: boolean;
}

export interface Cloud {
  readonly name: string;
  /** File of the section, for messages. */
  readonly source: string;
  readonly credentials: Credentials;
  readonly regionName: string | undefined;
  readonly interface: EndpointInterface;
  readonly tls: TlsOptions;
  readonly imageFormat: string;
  /** True if the cloud accepts images only by tasks of its image service, which import them from object storage. */
  readonly imageTasks: boolean;
  readonly services: Readonly<Record<ServiceName, ServiceOptions>>;
  /** If false, floating IPs are never used, even if the cloud's networks appear to support them. */
  readonly floatingIps: boolean;
  /** If true, nodes are reached at private addresses because the launcher runs inside the cloud. */
  readonly private: boolean;
  readonly networks: readonly NetworkHint[];
}

const DEFAULT_IMAGE_FORMAT = 'qcow2';

/** Reads a cloud's configuration from files and environment. Throws `ConfigurationError` with the file and the key. */
export function readCloud(name: string, regionName: string | undefined, where: Environment): Cloud {
  const { section: whole, source } = findCloud(name, where);
  const place = `${source}: cloud ${name}`;
  const region = chooseRegion(whole, regionName, place);
  const section = withRegionName(merged(whole, region?.values ?? {}), region?.name ?? '');
  return {
    name,
    source,
    credentials: readCredentials(section, place),
    regionName: region?.name,
    interface: readInterface(section, 'interface', place) ?? readInterface(section, 'endpoint_type', place) ?? 'public',
    tls: readTls(section, where.home),
    imageFormat: stringAt(section, 'image_format') ?? DEFAULT_IMAGE_FORMAT,
    imageTasks: flagAt(section, 'image_api_use_tasks') ?? false,
    services: {
      compute: readService(section, ['compute'], place),
      image: readService(section, ['image'], place),
      network: readService(section, ['network'], place),
      volume: readService(section, ['block_storage', 'volumev3', 'volume'], place),
    },
    floatingIps: stringAt(section, 'floating_ip_source')?.toLowerCase() !== 'none',
    private: flagAt(section, 'private') ?? false,
    networks: readNetworks(section, place),
  };
}

/** Returns the image format of a cloud. If its files cannot be used: the default, with the reason to `onUnknown`. */
export function imageFormatOf(
  name: string,
  regionName: string | undefined,
  where: Environment,
  onUnknown: (reason: string) => void,
): string {
  try {
    return readCloud(name, regionName, where).imageFormat;
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    onUnknown(error.message);
    return DEFAULT_IMAGE_FORMAT;
  }
}

/** A region and the settings that are specific to it. */
interface Region {
  readonly name: string;
  readonly values: JsonObject;
}

/**
 * Returns the wanted region, else the first that the cloud lists, or undefined if there is neither. Throws if the cloud
 * lists regions without the wanted one.
 */
function chooseRegion(section: JsonObject, wanted: string | undefined, place: string): Region | undefined {
  const known = knownRegions(section, place);
  if (wanted === undefined) return known[0];
  const found = known.find(({ name }) => name === wanted);
  if (found !== undefined || known.length === 0) return found ?? { name: wanted, values: {} };
  const names = known.map(({ name }) => name).join(', ');
  throw new ConfigurationError(`${place}: there is no region ${JSON.stringify(wanted)}; there are: ${names}`);
}

/** Returns the entries of `regions` (names, or mappings with `name` and `values`), else those of any `region_name`. */
function knownRegions(section: JsonObject, place: string): Region[] {
  const single = section['region_name'];
  const entries = section['regions'] ?? (typeof single === 'string' ? single.split(',') : single) ?? [];
  if (!Array.isArray(entries)) throw new ConfigurationError(`${place}: regions is not a list`);
  return (entries as readonly JsonValue[]).flatMap((entry) => {
    const region = isJsonObject(entry) ? entry : { name: entry };
    const name = scalarAt(region, 'name');
    if (name === undefined) throw new ConfigurationError(`${place}: an entry of regions has no name`);
    return name === '' ? [] : [{ name, values: objectAt(region, 'values') ?? {} }];
  });
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
    // `2` and `2.1` name the API itself; microversions start at 2.2.
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

/** Reads `networks`, or the keys of old files for one external and one internal network. */
function readNetworks(section: JsonObject, place: string): NetworkHint[] {
  const networks = entriesAt(section, 'networks').map(({ section: network, name }) =>
    readNetwork(network, name, place),
  );
  for (const [key, external] of [
    ['external_network', true],
    ['internal_network', false],
  ] as const) {
    const name = stringAt(section, key);
    if (name === undefined) continue;
    if ('networks' in section)
      throw new ConfigurationError(`${place}: ${key} and networks exclude each other; remove ${key}`);
    networks.push({
      name,
      routesExternally: external,
      natDestination: !external,
      natSource: false,
      defaultInterface: external,
    });
  }
  for (const [key, flag] of [
    ['default_interface', 'defaultInterface'],
    ['nat_destination', 'natDestination'],
  ] as const) {
    const marked = networks.filter((network) => network[flag]).map(({ name }) => name);
    if (marked.length > 1) {
      throw new ConfigurationError(`${place}: ${key} is set on ${marked.join(' and ')}; one network can have it`);
    }
  }
  return networks;
}

function readNetwork(section: JsonObject, name: string, place: string): NetworkHint {
  if (name === '') throw new ConfigurationError(`${place}: an entry of networks has no name`);
  return {
    name,
    routesExternally: flagAt(section, 'routes_ipv4_externally') ?? flagAt(section, 'routes_externally'),
    natDestination: flagAt(section, 'nat_destination') ?? false,
    natSource: flagAt(section, 'nat_source') ?? false,
    defaultInterface: flagAt(section, 'default_interface') ?? false,
  };
}

/** Substitutes `{region_name}`, which vendors use in URLs. */
function withRegionName(section: JsonObject, region: string): JsonObject {
  const filled: Record<string, JsonValue> = {};
  for (const [key, value] of Object.entries(section)) {
    filled[key] = typeof value === 'string' && key !== 'password' ? value.replaceAll('{region_name}', region) : value;
  }
  const auth = objectAt(section, 'auth');
  const url = auth === undefined ? undefined : stringAt(auth, 'auth_url');
  return url === undefined
    ? filled
    : { ...filled, auth: { ...auth, auth_url: url.replaceAll('{region_name}', region) } };
}

function scalarAt(section: JsonObject, key: string): string | undefined {
  const value = section[key];
  return typeof value === 'number' ? String(value) : stringAt(section, key);
}

/** Reads a boolean, or a string because environment variables have no other type. */
function flagAt(section: JsonObject, key: string): boolean | undefined {
  const text = stringAt(section, key)?.toLowerCase();
  if (text === undefined) return booleanAt(section, key);
  return ['true', 'yes', '1', 'on'].includes(text);
}
