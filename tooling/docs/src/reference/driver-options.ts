/** Generates the options of the drivers: the common ones once, and for each driver those that differ. */

import { imageUploadProperties, isJsonObject, providerSchema, type JsonSchema } from '@nodepool/core';
import { driverPackages, loadDriver, type DriverPackage } from '../drivers.js';
import { schemaReference } from './schema.js';

const SECTIONS: ReadonlySet<string> = new Set([
  'pools[]',
  'pools[].labels[]',
  'pools[].nodes[]',
  'diskimages[]',
  'cloud-images[]',
]);

/** Mappings whose keys are described by the page of the configuration file, or by the README of the example driver. */
const ELSEWHERE: ReadonlySet<string> = new Set(['diskimages[].launch-test', 'diskimages[].canary', 'cloud']);

/** Drivers whose page shows the differences from the page of another driver. */
const VARIANTS: ReadonlyMap<string, string> = new Map([
  ['openshift', 'kubernetes'],
  ['openshiftpods', 'kubernetes'],
]);

/** Returns the options that the drivers share. */
export function commonOptions(): string {
  return schemaReference(commonSchema(true), { depth: 3, sections: SECTIONS, elsewhere: ELSEWHERE });
}

/** Returns the options of a driver that its base does not describe, and its differences from the base. */
export async function driverOptions(driver: DriverPackage): Promise<string> {
  const { schema } = await loadDriver(driver);
  const variant = VARIANTS.get(driver.name);
  const original = driverPackages().find(({ name }) => name === variant);
  const hasDiskImages = isJsonObject(schema['properties']) && schema['properties']['diskimages'] !== undefined;
  const base = original === undefined ? commonSchema(hasDiskImages) : (await loadDriver(original)).schema;
  return schemaReference(schema, { depth: 3, sections: SECTIONS, elsewhere: ELSEWHERE, base });
}

function commonSchema(hasDiskImages: boolean): JsonSchema {
  return providerSchema({
    defaults: { bootTimeoutSeconds: 60, rateUnit: 'calls-per-second' },
    provider: hasDiskImages ? { properties: imageUploadProperties } : {},
    diskImage: {},
    cloudImage: {},
  });
}
