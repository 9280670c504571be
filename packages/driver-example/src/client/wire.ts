/** Reads the JSON of the HTTP API into the types of the cloud. Errors describe the problem of invalid data. */

import { isJsonObject, type JsonObject } from '@nodepool/core';
import type { CloudDescription, CloudErrorCode, CloudImage, CloudInstance, Page } from '../cloud/types.js';
import { CLOUD_ERROR_STATUS, CloudError } from '../cloud/types.js';

/** A response that does not conform to the API. */
export class WireError extends Error {
  constructor(place: string, expected: string) {
    super(`the answer is not that of an example cloud: expected ${expected} at ${place}`);
    this.name = 'WireError';
  }
}

const INSTANCE_STATES = ['building', 'running', 'failed', 'deleting', 'deleted'] as const;
const IMAGE_STATES = ['queued', 'ready', 'failed'] as const;

export function readInstance(value: unknown): CloudInstance {
  const from = new Reader(value, 'instance');
  return {
    id: from.text('id'),
    name: from.text('name'),
    state: from.oneOf('state', INSTANCE_STATES),
    failure: from.textOrNull('failure'),
    zone: from.text('zone'),
    cores: from.number('cores'),
    ram: from.number('ram'),
    image: from.text('image'),
    tags: from.texts('tags'),
    publicIpv4: from.text('publicIpv4'),
    privateIpv4: from.text('privateIpv4'),
    publicIpv6: from.text('publicIpv6'),
    size: from.textOrNull('size'),
    sshPort: from.numberOrNull('sshPort'),
  };
}

export function readImage(value: unknown): CloudImage {
  const from = new Reader(value, 'image');
  return {
    id: from.text('id'),
    name: from.text('name'),
    format: from.text('format'),
    size: from.number('size'),
    state: from.oneOf('state', IMAGE_STATES),
    tags: from.texts('tags'),
    properties: from.texts('properties'),
  };
}

export function readPage<T>(value: unknown, readItem: (item: unknown) => T): Page<T> {
  const from = new Reader(value, 'page');
  return { items: from.list('items').map(readItem), next: from.textOrNull('next') };
}

export function readDescription(value: unknown): CloudDescription {
  const from = new Reader(value, 'cloud');
  const quota = new Reader(from.field('quota'), 'cloud.quota');
  return {
    zones: from.list('zones').map(String),
    sizes: from.list('sizes').map((size) => {
      const entry = new Reader(size, 'cloud.sizes');
      return { name: entry.text('name'), cores: entry.number('cores'), ram: entry.number('ram') };
    }),
    quota: { instances: quota.number('instances'), cores: quota.number('cores'), ram: quota.number('ram') },
    // Older servers lack the field and never use ids again.
    reusesIds: from.field('reusesIds') === true,
  };
}

export function readConsole(value: unknown): string {
  return new Reader(value, 'console').text('output');
}

/** Returns the cloud's error in the body of an error response; undefined if the cloud did not create the response. */
export function readError(value: unknown): CloudError | undefined {
  if (!isJsonObject(value) || !isJsonObject(value['error'])) return undefined;
  const { code, message, retryAfterSeconds } = value['error'];
  if (typeof code !== 'string' || !isCloudErrorCode(code) || typeof message !== 'string') return undefined;
  return new CloudError(code, message, typeof retryAfterSeconds === 'number' ? retryAfterSeconds : undefined);
}

function isCloudErrorCode(code: string): code is CloudErrorCode {
  return Object.hasOwn(CLOUD_ERROR_STATUS, code);
}

/** Reads the fields of an object, and keeps its position for errors. */
class Reader {
  private readonly object: JsonObject;

  constructor(
    value: unknown,
    private readonly place: string,
  ) {
    if (!isJsonObject(value)) throw new WireError(place, 'an object');
    this.object = value;
  }

  field(key: string): unknown {
    return this.object[key];
  }

  text(key: string): string {
    const value = this.field(key);
    if (typeof value !== 'string') throw this.wrong(key, 'a text');
    return value;
  }

  textOrNull(key: string): string | null {
    return this.field(key) === null ? null : this.text(key);
  }

  number(key: string): number {
    const value = this.field(key);
    if (typeof value !== 'number') throw this.wrong(key, 'a number');
    return value;
  }

  numberOrNull(key: string): number | null {
    return this.field(key) === null ? null : this.number(key);
  }

  oneOf<T extends string>(key: string, values: readonly T[]): T {
    const value = values.find((candidate) => candidate === this.field(key));
    if (value === undefined) throw this.wrong(key, values.join(' or '));
    return value;
  }

  list(key: string): readonly unknown[] {
    const value = this.field(key);
    if (!Array.isArray(value)) throw this.wrong(key, 'a list');
    return value;
  }

  texts(key: string): Readonly<Record<string, string>> {
    const value = this.field(key);
    if (!isJsonObject(value)) throw this.wrong(key, 'an object of texts');
    const texts: Record<string, string> = {};
    for (const [name, text] of Object.entries(value)) {
      if (typeof text !== 'string') throw this.wrong(`${key}.${name}`, 'a text');
      texts[name] = text;
    }
    return texts;
  }

  private wrong(key: string, expected: string): WireError {
    return new WireError(`${this.place}.${key}`, expected);
  }
}
