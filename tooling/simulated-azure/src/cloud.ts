/** State and common answers of all services. */

import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';
import { Definitions } from './definitions.js';
import { CloudState, type Answer, type SimulatedCloudOptions } from '@nodepool/simulated-cloud';
import { listAge, type AzureContext } from './request-context.js';
import type { AzureFaults } from './faults.js';
import { textIn } from './fields.js';
import { Operations, type NewOperation } from './operations.js';
import { notFound, ArmError } from './api-error.js';
import { ACCOUNT, DEFAULT_SETTINGS, LOCATIONS, SAMPLE_LIMITS, type CloudSettings } from './settings.js';
import { idOf, Store, tagsIn, type Resource, type ResourceType } from './store.js';

/** Fields that refer to the user of a resource. */
const USERS = new Set(['managedBy', 'virtualMachine', 'ipConfiguration']);
const MAX_TAGS = 50;
const MAX_TAG_NAME = 512;
const MAX_TAG_VALUE = 256;
const INVALID_TAG_CHARACTERS = /[<>%&\\?/]/;

/** Ends the position of a page that follows an empty one. */
const AFTER_EMPTY = '-after-empty';

export class Cloud extends CloudState<CloudSettings> {
  readonly store: Store;
  readonly operations: Operations;
  /** Locations by lower-case group name. */
  readonly groups = new Map<string, string>();
  readonly limits = new Map(Object.entries(SAMPLE_LIMITS));
  readonly compute = Definitions.of('compute');
  readonly network = Definitions.of('network');
  readonly resources = Definitions.of('resources');

  constructor(
    options: SimulatedCloudOptions<CloudSettings>,
    readonly faults: AzureFaults,
  ) {
    super(options, DEFAULT_SETTINGS);
    this.store = new Store(this.clock);
    this.operations = new Operations(this.clock, this.random);
  }

  /** Returns a resource for an answer, without references to deleted users. */
  shown(resource: Resource, more: JsonObject = {}): JsonObject {
    const body = this.store.show(resource);
    const properties = { ...(body['properties'] as JsonObject), ...more };
    return this.withoutDangling({ ...body, properties: this.withoutDangling(properties) });
  }

  private withoutDangling(fields: JsonObject): JsonObject {
    const dangles = (key: string, value: JsonValue): boolean => {
      if (!USERS.has(key)) return false;
      const id = isJsonObject(value) ? value['id'] : value;
      return typeof id === 'string' && this.store.get(id.replace(/\/ipConfigurations\/.*/, '')) === undefined;
    };
    return Object.fromEntries(Object.entries(fields).filter(([key, value]) => !dangles(key, value)));
  }

  /** Returns a resource; throws if the group or the resource does not exist. */
  find(type: ResourceType, [group = '', name = '']: readonly string[]): Resource {
    this.requireGroup(group);
    const found = this.store.find(type, group, name);
    if (found === undefined) throw notFound(idOf(type, group, name));
    return found;
  }

  /** Returns an answer with one resource. */
  get(type: ResourceType, { params }: AzureContext, more: JsonObject = {}): Answer {
    return { status: 200, body: this.shown(this.find(type, params), more) };
  }

  /** Returns an answer with a page of resources of a type, in the path's group or else in the subscription. */
  list(type: ResourceType, context: AzureContext): Answer {
    const [group] = context.params;
    if (group !== undefined) this.requireGroup(group);
    const found = this.store
      .list(type, listAge(context))
      .filter((one) => group === undefined || one.group.toLowerCase() === group.toLowerCase());
    return this.page(
      found.map((one) => this.shown(one)),
      context,
    );
  }

  /** Replaces the tags. Throws for any other change, which the simulation does not support. */
  patch(type: ResourceType, { params, json }: AzureContext): Resource {
    const found = this.find(type, params);
    const { tags, ...other } = json();
    const [change] = Object.keys(other);
    if (change !== undefined) {
      throw new ArmError(409, 'PropertyChangeNotAllowed', `Changing property '${change}' is not allowed.`);
    }
    checkTags(tags);
    if (tags !== undefined) found.tags = tagsIn(tags);
    return found;
  }

  /** Returns an answer with the polling URLs of an operation. */
  accepted(operation: NewOperation, status: 200 | 201 | 202, body?: JsonValue): Answer {
    const id = this.operations.start(operation);
    const address = `${this.url}/subscriptions/${ACCOUNT.subscriptionId}/providers/Microsoft.Compute/locations/here`;
    return {
      status,
      body,
      headers: {
        'Azure-AsyncOperation': `${address}/operations/${id}?api-version=2025-04-01`,
        Location: `${address}/results/${id}?api-version=2025-04-01`,
        'Retry-After': String(this.settings.retryAfterSeconds),
      },
    };
  }

  /** Returns a page of a list with the URL of the next one. */
  page(items: readonly JsonObject[], { query, url }: AzureContext): Answer {
    const token = query.get('$skiptoken') ?? '0';
    const start = Number.parseInt(token, 10);
    const isEmpty = this.settings.emptyPages && !token.endsWith(AFTER_EMPTY);
    const end = isEmpty ? start : start + this.settings.pageLimit;
    const next = new URL(url);
    next.searchParams.set('$skiptoken', isEmpty ? `${start}${AFTER_EMPTY}` : String(end));
    return {
      status: 200,
      body: { value: items.slice(start, end), ...(isEmpty || end < items.length ? { nextLink: next.href } : {}) },
    };
  }

  requireGroup(group: string): void {
    if (this.groups.has(group.toLowerCase())) return;
    throw new ArmError(404, 'ResourceGroupNotFound', `Resource group '${group}' could not be found.`);
  }

  /** Checks the properties common to all resources: group, name, location, zones and tags. Returns the location. */
  checkResource(type: ResourceType, [group = '', name = '']: readonly string[], body: JsonObject): string {
    this.requireGroup(group);
    const { zones: wanted } = body;
    const location = textIn(body, 'location');
    if (!RESOURCE_NAMES[type].test(name)) {
      throw new ArmError(
        400,
        'InvalidParameter',
        `The entity name '${name}' is invalid according to its validation rule.`,
      );
    }
    const known = LOCATIONS.find((one) => sameLocation(one.name, location));
    if (known === undefined) {
      const message = `The provided location '${location}' is not available for resource type '${type}'.`;
      throw new ArmError(400, 'LocationNotAvailableForResourceType', message);
    }
    if (Array.isArray(wanted)) {
      const zones: readonly unknown[] = wanted;
      const wrong = zones.find((zone) => typeof zone !== 'string' || !known.zones.includes(zone));
      if (wrong !== undefined || zones.length > 1) {
        const message = `The zone(s) '${zones.join()}' for resource '${type}/${name}' is not supported.`;
        throw new ArmError(400, 'InvalidAvailabilityZone', message);
      }
    }
    checkTags(body['tags']);
    return known.name;
  }
}

/** Microsoft's naming rules: letters, digits, `.`, `_` and `-`. */
const RESOURCE_NAMES: Readonly<Record<ResourceType, RegExp>> = {
  'Microsoft.Compute/virtualMachines': /^[^_\W][\w.-]{0,62}(?<![.-])$/,
  'Microsoft.Compute/disks': /^[\w.-]{1,80}$/,
  'Microsoft.Compute/images': /^[^_\W][\w.-]{0,78}(?<![.-])$/,
  'Microsoft.Network/networkInterfaces': /^[^_\W][\w.-]{0,78}(?<![.-])$/,
  'Microsoft.Network/publicIPAddresses': /^[^_\W][\w.-]{0,78}(?<![.-])$/,
};

export function checkName(type: ResourceType, name: string): void {
  if (RESOURCE_NAMES[type].test(name)) return;
  throw new ArmError(400, 'InvalidResourceName', `Resource name ${name} is invalid.`);
}

export function checkTags(tags: JsonValue | undefined): void {
  const entries = Object.entries(isJsonObject(tags) ? tags : {});
  const wrong = entries.find(
    ([name, value]) =>
      name.length > MAX_TAG_NAME ||
      INVALID_TAG_CHARACTERS.test(name) ||
      (typeof value === 'string' && value.length > MAX_TAG_VALUE),
  );
  if (wrong !== undefined) throw new ArmError(400, 'InvalidTagNameCharacters', `The tag '${wrong[0]}' is invalid.`);
  if (entries.length > MAX_TAGS) throw new ArmError(400, 'TooManyTags', `At most ${MAX_TAGS} tags are allowed.`);
}

/** Returns true if both names mean the same location: Azure accepts `centralus` and `Central US`. */
function sameLocation(a: string, b: string): boolean {
  return a === b.replaceAll(' ', '').toLowerCase();
}
