/** Where the services of a cloud are: its catalog, narrowed down by what `clouds.yaml` says. */

import { ConfigurationError, entriesAt, stringAt, type JsonObject } from '@nodepool/core';
import type { Cloud, EndpointInterface, ServiceName } from './cloud.js';

/** One endpoint of the catalog of identity v3. */
export interface CatalogEntry {
  readonly serviceType: string;
  readonly interface: string;
  readonly region: string | undefined;
  readonly url: string;
}

/** Types by which catalogs know the services, the official one first (OpenStack service types authority). */
const SERVICE_TYPES: Readonly<Record<ServiceName, readonly string[]>> = {
  compute: ['compute'],
  image: ['image'],
  network: ['network'],
  volume: ['block-storage', 'block-store', 'volumev3', 'volume'],
};

/** Version that an endpoint's path gets when it names none. */
const VERSIONS: Readonly<Record<ServiceName, string | undefined>> = {
  compute: 'v2.1',
  image: 'v2',
  network: 'v2.0',
  volume: undefined,
};

/** Reads `token.catalog`; what is not an endpoint is left out. */
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
 * The endpoint of a service with its version, without trailing slash; undefined when the cloud does not have the service.
 * Throws `ConfigurationError` when it has, but not in the region or at the interface that is asked for.
 */
export function findEndpoint(cloud: Cloud, catalog: readonly CatalogEntry[], service: ServiceName): string | undefined {
  const options = cloud.services[service];
  if (options.endpoint !== undefined) return versioned(options.endpoint, service);
  const types = options.serviceType === undefined ? SERVICE_TYPES[service] : [options.serviceType];
  const type = types.find((candidate) => catalog.some((entry) => entry.serviceType === candidate));
  if (type === undefined) return undefined;
  const entries = catalog.filter((entry) => entry.serviceType === type);
  const found = narrowed(cloud, entries, type, options.interface ?? cloud.interface);
  return versioned(found.url, service);
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
  const inRegion =
    cloud.regionName === undefined ? atInterface : atInterface.filter((entry) => entry.region === cloud.regionName);
  const [found] = inRegion;
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
