/** A complete list of a cloud's instances, indexed on demand. */

import { isJsonObject, type JsonValue } from '../../model/json.js';
import type { ExternalId } from '../../model/node.js';
import type { Instance } from '../api.js';
import { DriverError } from '../errors.js';
import type { Listing } from '../state-machine-api.js';

/** Returns a string that is equal for equal external ids, regardless of the order of an object's fields. */
export function externalIdKey(externalId: ExternalId): string {
  return typeof externalId === 'string' ? externalId : canonicalJson(externalId);
}

function canonicalJson(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  const fields = Object.keys(value).sort();
  return `{${fields.map((field) => `${JSON.stringify(field)}:${canonicalJson(value[field] ?? null)}`).join(',')}}`;
}

/** The instances with a key; without an array for a single one, because there are many. */
type Index = ReadonlyMap<string, Instance | Instance[]>;

/** A listing that creates each index at its first lookup, so that unused indexes cost nothing. */
export class IndexedListing implements Listing {
  private ids: Index | undefined;
  private readonly tags = new Map<string, Index>();

  constructor(
    readonly round: number,
    readonly askedAt: number,
    readonly instances: readonly Instance[],
  ) {}

  byExternalId(externalId: ExternalId): Instance | undefined {
    return this.allByExternalId(externalId)[0];
  }

  allByExternalId(externalId: ExternalId): readonly Instance[] {
    this.ids ??= indexBy(this.instances, (instance) => externalIdKey(instance.externalId));
    return found(this.ids, externalIdKey(externalId));
  }

  byTag(tag: string, value: string): readonly Instance[] {
    let index = this.tags.get(tag);
    if (index === undefined) {
      index = indexBy(this.instances, ({ tags }) => tags[tag]);
      this.tags.set(tag, index);
    }
    return found(index, value);
  }
}

function found(index: Index, key: string): readonly Instance[] {
  const entry = index.get(key) ?? [];
  return Array.isArray(entry) ? entry : [entry];
}

function indexBy(instances: readonly Instance[], keyOf: (instance: Instance) => string | undefined): Index {
  const index = new Map<string, Instance | Instance[]>();
  for (const instance of instances) {
    const key = keyOf(instance);
    if (key === undefined) continue;
    const others = index.get(key);
    if (others === undefined) index.set(key, instance);
    else if (Array.isArray(others)) others.push(instance);
    else index.set(key, [others, instance]);
  }
  return index;
}

/** Validates a driver's list of instances as far as callers rely on it. */
export function checkInstances(listed: unknown): readonly Instance[] {
  if (!Array.isArray(listed)) throw driverDefect(`${typeof listed} instead of an array`);
  const broken = listed.findIndex((instance) => !isInstance(instance));
  if (broken >= 0) throw driverDefect(`an entry without external id or tags at index ${broken}`);
  return listed as readonly Instance[];
}

function isInstance(value: unknown): value is Instance {
  if (!isJsonObject(value)) return false;
  const { externalId, tags } = value;
  return (typeof externalId === 'string' || isJsonObject(externalId)) && isJsonObject(tags);
}

function driverDefect(what: string): DriverError {
  return new DriverError('unexpected', `the driver's list of instances is ${what}; this is a defect of the driver`);
}
