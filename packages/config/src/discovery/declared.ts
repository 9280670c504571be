import { isJsonObject, stringAt, type JsonObject } from '@nodepool/core';

export interface DeclaredDriver {
  /** Name of the driver, as configurations use it. */
  readonly name: string;
  /** Name of the export; undefined for a package with one driver, which exports it as `default` or `driver`. */
  readonly exportName: string | undefined;
}

/**
 * Returns the drivers of a package: one for `"driver": "<name>"`, several for `"drivers": {"<name>": "<export>"}`, none
 * if the field has neither form.
 */
export function declaredDrivers(manifest: JsonObject): readonly DeclaredDriver[] {
  const metadata = manifest['nodepool'];
  if (!isJsonObject(metadata)) return [];
  const { drivers } = metadata;
  if (drivers === undefined) {
    const name = stringAt(metadata, 'driver');
    return name === undefined ? [] : [{ name, exportName: undefined }];
  }
  if (!isJsonObject(drivers) || metadata['driver'] !== undefined) return [];
  const declared = Object.keys(drivers).map((name) => ({ name, exportName: stringAt(drivers, name) }));
  return declared.every(({ exportName }) => exportName !== undefined) ? declared : [];
}
