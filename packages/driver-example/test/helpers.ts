/** Helpers that the tests of this package share. */

import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import type { JsonObject } from '@nodepool/core';
import { ExampleCloud } from '../src/cloud/cloud.js';
import { readCloudSettings } from '../src/cloud/settings-reader.js';
import type { ImageSpec, InstanceSpec } from '../src/cloud/types.js';

/** Returns a cloud on a virtual clock with settings as in a configuration file. */
export function cloudWith(section: JsonObject = {}, seed = 1): { cloud: ExampleCloud; clock: VirtualClock } {
  const clock = new VirtualClock();
  const cloud = new ExampleCloud({ clock, random: seededRandom(seed), settings: readCloudSettings(section) });
  return { cloud, clock };
}

export function instanceSpec(change: Partial<InstanceSpec> = {}): InstanceSpec {
  return { name: 'np-1', zone: null, size: null, cores: 2, ram: 2048, image: 'debian', tags: {}, ...change };
}

export function imageSpec(change: Partial<ImageSpec> = {}): ImageSpec {
  return { name: 'debian-1', format: 'raw', size: 3, md5: null, sha256: null, tags: {}, properties: {}, ...change };
}

/** Yields data in several chunks. */
export async function* pieces(...texts: string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

/** Returns the error that a call throws or rejects with. */
export async function failureOf(call: () => unknown): Promise<unknown> {
  try {
    await call();
  } catch (error) {
    return error;
  }
  throw new Error('the call did not fail');
}
