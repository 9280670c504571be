/** Finds the endpoints of a cloud's services in its catalog, as restricted by `clouds.yaml`. */

import { ConfigurationError, entriesAt, stringAt, type JsonObject } from '@nodepool/core';
import type { Cloud, EndpointInterface, ServiceName } from './cloud.js';

export interface CatalogEntry {
  readonly serviceType: string;
  readonly interface: string;
  readonly region: string | undefined;
  readonly url: string;
}

/** Service types in catalogs by service, the official one first (OpenStack service types authority). */
const SERVICE_TYPES: Readonly<Record<ServiceName, readonly string[]>> = {
  compute: ['compute'],
  image: ['image'],
  network: ['network'],
  volume: ['block-storage', 'block-store', 'volumev3', 'volume'],
};

/** Version that is appended to an endpoint path without one. */
const VERSIONS: Readonly<Record<ServiceName, string | undefined>> = {
  compute: 'v2.1',
  image: 'v2',
  network: 'v2.0',
  volume: undefined,
};

/** Reads `token.catalog` and skips entries that are not endpoints. */
export function readCatalog(token: JsonObject): readonly CatalogEntry[] {
  return entriesAt(token, 'catalog').flatMap(({ section: service }) =>
    entriesAt(service, 'endpoints').flatMap(({ section: endpoint }) => {
      const serviceType = stringAt(service, 'type');
      const url = stringAt(endpoint, 'url');
      if (serviceType === undefined || url === undefined) return [];
      const region = stringAt(endpoint, 'region_id') ?? stringAt(endpoint, 'region');
      return [{ serviceType, interface: stringAt(endpoint, 'interface') ?? 'public', region, url }];
    }),
  );
}

/**
 * Returns a service's endpoint with its version and without a trailing slash, or undefined if the cloud does not have
 * the service. Throws `ConfigurationError` if the service exists, but not in the requested region or with the requested
 * interface.
 */
export function findEndpoint(cloud: Cloud, catalog: readonly CatalogEntry[], service: ServiceName): string | undefined {
  const options = cloud.services[service];
  if (options.endpoint !== undefined) return versioned(options.endpoint, service);
  const entries = entriesOf(cloud, catalog, service);
  const [first] = entries;
  if (first === undefined) return undefined;
  const found = narrowed(cloud, entries, first.serviceType, options.interface ?? cloud.interface);
  return versioned(found.url, service);
}

/** Returns true if the service has an endpoint in the requested region with the requested interface. */
export function hasEndpoint(cloud: Cloud, catalog: readonly CatalogEntry[], service: ServiceName): boolean {
  const options = cloud.services[service];
  if (options.endpoint !== undefined) return true;
  const wanted = options.interface ?? cloud.interface;
  return entriesOf(cloud, catalog, service).some((entry) => entry.interface === wanted && isInRegion(cloud, entry));
}

/** Returns the entries of a service in all regions, of its first service type in the catalog. */
function entriesOf(cloud: Cloud, catalog: readonly CatalogEntry[], service: ServiceName): readonly CatalogEntry[] {
  const { serviceType } = cloud.services[service];
  const types = serviceType === undefined ? SERVICE_TYPES[service] : [serviceType];
  const type = types.find((candidate) => catalog.some((entry) => entry.serviceType === candidate));
  return catalog.filter((entry) => entry.serviceType === type);
}

function isInRegion({ regionName }: Cloud, { region }: CatalogEntry): boolean {
  return regionName === undefined || region === regionName;
}

function narrowed(
  cloud: Cloud,
  entries: readonly CatalogEntry[],
  type: string,
  wanted: EndpointInterface,
): CatalogEntry {
  const place = `${cloud.source}: cloud ${cloud.name}`;
  const atInterface = entries.filter((entry) => entry.interface === wanted);
  const regions = [...new Set(atInterface.map((entry) => entry.region ?? ''))];
  const found = atInterface.find((entry) => isInRegion(cloud, entry));
  if (found === undefined) {
    const known =
      regions.length > 0
        ? `regions: ${regions.join(', ')}`
        : `interfaces: ${[...new Set(entries.map((entry) => entry.interface))].join(', ')}`;
    const where = `at interface ${wanted}${cloud.regionName === undefined ? '' : ` in region ${cloud.regionName}`}`;
    throw new ConfigurationError(`${place}: the catalog has no ${type} service ${where}; it has ${known}`);
  }
  if (cloud.regionName === undefined && regions.length > 1) {
    throw new ConfigurationError(
      `${place}: region_name is missing (or region-name of the provider); the catalog has regions: ${regions.join(', ')}`,
    );
  }
  return found;
}

function versioned(url: string, service: ServiceName): string {
  const base = url.replace(/\/+$/, '');
  const version = VERSIONS[service];
  return version === undefined || /\/v\d+(\.\d+)?(\/|$)/.test(base) ? base : `${base}/${version}`;
}
