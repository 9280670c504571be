/** Calls to the compute service (nova, API v2.1), and the properties that the driver reads from its answers. */

import type { Call, Clock, JsonObject, MakeCall } from '@nodepool/core';
import { CachedRead, NotFoundError, numberAt, objectAt, stringAt, TransientError } from '@nodepool/core';
import { ForeignNotFoundError } from '../errors.js';
import { listOf, memberOf, requiredText } from './answers.js';
import { allPages } from './pages.js';
import { readServer, type Server } from './server.js';
import type { ServiceRequest, Session } from './session.js';

/** Time limit of a creation (ms). Busy clouds are slow, and after a timeout the driver must search for the server. */
const CREATE_TIMEOUT_MS = 120_000;
const LIST_TIMEOUT_MS = 110_000;
/** Maximum age of the negotiated microversion (ms), because clouds are upgraded while the launcher runs. */
const NEGOTIATION_MAX_AGE_MS = 6 * 3_600_000;

/** First microversion in which servers contain their flavor's properties instead of its id (API history of nova). */
const FLAVOR_IN_SERVER = 47;

export interface Flavor {
  readonly id: string;
  readonly name: string;
  readonly vcpus: number;
  /** MiB. */
  readonly ram: number;
}

/** Limits of a project; -1 means unlimited. */
export interface ComputeLimits {
  readonly instances: number;
  readonly cores: number;
  /** MiB. */
  readonly ram: number;
}

export class Compute {
  /** Minor number of the highest microversion to use. */
  private readonly minor: CachedRead<number>;

  /** `ceiling` is the highest microversion to use, e.g. `2.60`. */
  constructor(
    private readonly session: Session,
    private readonly ceiling: string | undefined,
    makeCall: MakeCall,
    clock: Clock,
  ) {
    this.minor = new CachedRead((call) => this.negotiate(call), makeCall, clock, NEGOTIATION_MAX_AGE_MS);
  }

  /** Lists all servers of the project with all their properties. */
  async listServers(call: Call): Promise<readonly Server[]> {
    const headers = await this.withFlavors();
    const request = { ...get('servers.detail', '/servers/detail'), headers, timeoutMs: LIST_TIMEOUT_MS };
    const servers = await allPages(this.session, request, 'servers', call);
    return servers.map((server) => readServer(server, 'compute: GET servers.detail'));
  }

  /** Rejects with `NotFoundError` if the server does not exist. */
  async getServer(id: string, call: Call): Promise<Server> {
    const request = { ...get('server', `/servers/${encodeURIComponent(id)}`), headers: await this.withFlavors() };
    return readServer(
      memberOf(await this.session.requestJson(request, call), 'server', request.operation),
      'compute: GET server',
    );
  }

  /** Resolves with the id of the new server, which is still being built. */
  async createServer(server: JsonObject, call: Call): Promise<string> {
    const request: ServiceRequest = { ...post('servers', '/servers'), json: { server }, timeoutMs: CREATE_TIMEOUT_MS };
    return requiredText(
      memberOf(await this.session.requestJson(request, call), 'server', request.operation),
      'id',
      request.operation,
    );
  }

  /** Resolves if the deletion is accepted. Rejects with `NotFoundError` if the server does not exist. */
  async deleteServer(id: string, call: Call): Promise<void> {
    await this.session.delete('compute', 'server', `/servers/${encodeURIComponent(id)}`, call);
  }

  /** Returns the last lines of a server's console. */
  async consoleOf(id: string, lines: number, call: Call): Promise<string> {
    const request: ServiceRequest = {
      ...post('server.action', `/servers/${encodeURIComponent(id)}/action`),
      json: { 'os-getConsoleOutput': { length: lines } },
    };
    return requiredText(await this.session.requestJson(request, call), 'output', request.operation);
  }

  async listFlavors(call: Call): Promise<readonly Flavor[]> {
    const request = get('flavors.detail', '/flavors/detail');
    const flavors = await allPages(this.session, request, 'flavors', call);
    return flavors.map((flavor) => ({
      id: requiredText(flavor, 'id', request.operation),
      name: requiredText(flavor, 'name', request.operation),
      vcpus: numberAt(flavor, 'vcpus') ?? 0,
      ram: numberAt(flavor, 'ram') ?? 0,
    }));
  }

  /** Returns the names of the zones that accept new servers. */
  async listAvailabilityZones(call: Call): Promise<readonly string[]> {
    const request = get('os-availability-zone', '/os-availability-zone');
    const zones = listOf(await this.session.requestJson(request, call), 'availabilityZoneInfo', request.operation);
    return zones.flatMap((zone) => {
      const name = stringAt(zone, 'zoneName');
      return name !== undefined && objectAt(zone, 'zoneState')?.['available'] === true ? [name] : [];
    });
  }

  async limits(call: Call): Promise<ComputeLimits> {
    const request = get('limits', '/limits');
    const limits = objectAt(
      memberOf(await this.session.requestJson(request, call), 'limits', request.operation),
      'absolute',
    );
    if (limits === undefined) throw new TransientError(`${request.operation}: the answer has no absolute limits`);
    return {
      instances: numberAt(limits, 'maxTotalInstances') ?? -1,
      cores: numberAt(limits, 'maxTotalCores') ?? -1,
      ram: numberAt(limits, 'maxTotalRAMSize') ?? -1,
    };
  }

  /** Returns headers that make the cloud include flavor properties in servers, if it supports that. */
  private async withFlavors(): Promise<Record<string, string>> {
    if ((await this.minor.read()) < FLAVOR_IN_SERVER) return {};
    const version = `2.${FLAVOR_IN_SERVER}`;
    return { 'openstack-api-version': `compute ${version}`, 'x-openstack-nova-api-version': version };
  }

  /** Returns the highest microversion that both cloud and configuration allow; 1 if the cloud has no microversions. */
  private async negotiate(call: Call): Promise<number> {
    let described: JsonObject;
    try {
      described = await this.session.requestJson({ ...get('versions', '/'), atVersionRoot: true }, call);
    } catch (error) {
      // Some clouds do not expose the root of the service.
      if (error instanceof NotFoundError || error instanceof ForeignNotFoundError) return 1;
      throw error;
    }
    const highest = minorOf(stringAt(objectAt(described, 'version') ?? {}, 'version')) ?? 1;
    return Math.min(highest, minorOf(this.ceiling) ?? Infinity);
  }
}

function minorOf(version: string | undefined): number | undefined {
  const match = /^2\.(\d+)$/.exec(version ?? '');
  return match === null ? undefined : Number(match[1]);
}

function get(operation: string, path: string): ServiceRequest {
  return { service: 'compute', method: 'GET', operation, path };
}

function post(operation: string, path: string): ServiceRequest {
  return { service: 'compute', method: 'POST', operation, path };
}
