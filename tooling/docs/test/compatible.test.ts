/** The keys that the schemas mark as unknown to the Python Nodepool, compared with its own schemas. */

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { configSchema, formatProblem, loadConfig } from '@nodepool/config';
import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';
import { driverPackages, loadDriver } from '../src/drivers.js';
import { REPOSITORY } from '../src/repository.js';

const FILES = join(REPOSITORY, 'packages', 'config', 'test', 'files');

interface Keys {
  readonly [key: string]: Keys | null;
}

const existing = JSON.parse(readFileSync(join(FILES, 'existing', 'keys.json'), 'utf8')) as {
  readonly 'nodepool.yaml': Keys;
  readonly providers: Readonly<Record<string, Keys>>;
};

/** Keys that the Python Nodepool reads although its schemas lack them, with the place where it reads them. */
const READ_WITHOUT_SCHEMA: Readonly<Record<string, string>> = {
  'nodepool.yaml: diskimages.shell-type': 'nodepool/config.py, line 360',
  'azure: diskimages.password': 'nodepool/driver/azure/config.py, line 125',
  'azure: diskimages.generate-password': 'nodepool/driver/azure/config.py, line 126',
  'gce: rate': 'nodepool/driver/gce/config.py, line 113',
  'gce: pools.host-key-checking': 'nodepool/driver/gce/config.py, line 80',
  'openshift: max-servers': 'nodepool/driver/openshift/config.py, line 126',
  'openshiftpods: max-servers': 'nodepool/driver/openshiftpods/config.py, line 43',
  'static: pools.nodes.ssh-port': 'nodepool/driver/static/config.py, line 53',
};

/** Returns the keys of a schema that the existing schema does not contain, and the keys that are marked so. */
function comparison(
  name: string,
  schema: JsonObject,
  known: Keys,
): { readonly lacking: string[]; readonly marked: string[] } {
  const lacking: string[] = [];
  const marked: string[] = [];
  const visit = (part: JsonObject, keys: Keys | null, path: readonly string[]): void => {
    for (const branch of [...objects(part['anyOf']), ...objects(part['oneOf'])]) visit(branch, keys, path);
    if (isJsonObject(part['items'])) visit(part['items'], keys, path);
    for (const [key, below] of Object.entries(isJsonObject(part['properties']) ? part['properties'] : {})) {
      const place = `${name}: ${[...path, key].join('.')}`;
      if (!isJsonObject(below)) continue;
      const isKnown = keys !== null && (key in keys || '*' in keys);
      if (below['compatible'] === false) marked.push(place);
      if (!isKnown && !(place in READ_WITHOUT_SCHEMA)) lacking.push(place);
      else if (below['compatible'] !== false) visit(below, keys?.[key] ?? keys?.['*'] ?? null, [...path, key]);
    }
  };
  visit(schema, known, []);
  return { lacking, marked };
}

function objects(value: JsonValue | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

describe('a key that the Python Nodepool does not have', () => {
  it('is reported at the top level', () => {
    const provider = { name: null, driver: null, 'max-concurrency': null, priority: null };
    const known = { ...existing['nodepool.yaml'], providers: provider };
    const { lacking, marked } = comparison('nodepool.yaml', configSchema, known);
    expect(marked).toEqual(lacking);
    expect(marked).toContain('nodepool.yaml: labels.max-wait');
  });

  it.each(driverPackages())('is reported in sections of the driver $name', async (driverPackage) => {
    const { name, schema } = await loadDriver(driverPackage);
    const known = existing.providers[name];
    expect(schema['compatible'] === true).toBe(known !== undefined);
    if (known === undefined) return;
    const { lacking, marked } = comparison(name, schema, known);
    expect(marked).toEqual(lacking);
  });
});

describe('a configuration of the Python Nodepool', () => {
  const folder = mkdtempSync(join(tmpdir(), 'nodepool-compatible-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const drivers = driverPackages();
  const discoverDriver = async (name: string): ReturnType<typeof loadDriver> => {
    const found = drivers.find((each) => each.name === name);
    if (found === undefined) throw new Error(`no driver ${name}`);
    return await loadDriver(found);
  };

  it.each(['opendev', 'valid'].flatMap((from) => readdirSync(join(FILES, from)).map((name) => join(from, name))))(
    '%s has no unknown keys',
    async (name) => {
      const options = { env: {}, zookeeper: 'optional', listIncompatible: true, discoverDriver } as const;
      const file = join(folder, 'nodepool.yaml');
      // Some files contain a placeholder for the credentials file.
      writeFileSync(file, readFileSync(join(FILES, name), 'utf8').replace('{auth_path}', '/etc/azure.json'));
      const result = await loadConfig({ file, ...options });
      if (!result.ok) throw new Error(result.problems.map(formatProblem).join('\n'));
      expect(result.incompatible).toEqual([]);
    },
  );
});
