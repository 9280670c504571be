import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { formatPath, formatProblem, loadConfig, type LoadResult } from '@nodepool/config';
import {
  imageTestProperties,
  isJsonObject,
  type Driver,
  type JsonObject,
  type JsonValue,
  type ProviderConfig,
} from '@nodepool/core';
import { expectEqual } from '../expectations.js';
import { fileLabelNames, imageNames, labelNames } from '../provider-config.js';
import type { RuleGroup } from '../rule.js';
import { keysOf, placesIn, typesOf, withValueAt, type Path, type Place } from '../schema-walk.js';
import type { RuleContext } from '../rule-context.js';

/** Keys that core reads in the same way for every driver; they need no example. */
const CORE_KEYS = ['prices', ...Object.keys(imageTestProperties).map((key) => `diskimages[].${key}`)];

const UNKNOWN_KEY = 'no-such-key-of-any-driver';

export const configuration: RuleGroup = {
  title: 'Configuration',
  text: 'Also for drivers that create no instances.',
  rules: [
    {
      id: 'config.accepted',
      since: '1.0',
      title: 'valid sections are accepted, and contain every key of the schema',
      text: 'The examples in the test prove that every documented key works. A key without an example is untested.',
      appliesTo: 'all',
      check: async (context: RuleContext): Promise<void> => {
        const driver = await driverOf(context);
        const used = new Set<string>();
        for (const section of context.fixture.configuration.accepted) {
          const { problems, broken } = await loadSection(driver, section);
          expectEqual([...problems, ...broken], [], 'problems of a valid section');
          for (const { pattern } of placesIn(section, driver.schema)) used.add(pattern);
        }
        const keys = keysOf(driver.schema).map(({ pattern }) => pattern);
        const missing = keys.filter((key) => !used.has(key) && !CORE_KEYS.some((own) => key.startsWith(own)));
        expectEqual([...new Set(missing)], [], 'keys of the schema that no accepted example has');
      },
    },
    {
      id: 'config.described',
      since: '1.0',
      title: 'every key has a description',
      text: 'The reference page of a driver is generated from the descriptions in its schema.',
      appliesTo: 'all',
      check: async (context: RuleContext): Promise<void> => {
        const driver = await driverOf(context);
        const keys = keysOf(driver.schema);
        assert.ok(keys.length > 0, 'the schema has no keys');
        const silent = keys.filter(
          ({ schema }) => typeof schema['description'] !== 'string' || schema['description'] === '',
        );
        expectEqual(
          silent.map(({ pattern }) => pattern),
          [],
          'keys without a description',
        );
      },
    },
    {
      id: 'config.unknown',
      since: '1.0',
      title: 'unknown keys are rejected with their position',
      text:
        'A misspelt key that is ignored is a setting that the operator believes to be active. Mappings with free ' +
        'keys (attributes, properties, tags) are exempt.',
      appliesTo: 'all',
      check: async (context: RuleContext): Promise<void> => {
        await eachPlace(context, async (driver, section, { path, value, schema }) => {
          if (!isJsonObject(value) || schema['properties'] === undefined) return;
          const place = [...path, UNKNOWN_KEY];
          await assertRefused(driver, withValueAt(section, place, 1), place, 'an unknown key');
        });
      },
    },
    {
      id: 'config.types',
      since: '1.0',
      title: 'values of a wrong type are rejected with their position',
      text: 'The problem is reported at the value, so that the message contains its line and column.',
      appliesTo: 'all',
      check: async (context: RuleContext): Promise<void> => {
        await eachPlace(context, async (driver, section, { path, schema }) => {
          const wrong = wrongValueFor(schema);
          assert.ok(wrong !== undefined, `the schema of ${formatPath(path)} does not define the type of its values`);
          if (path.length === 0) return;
          await assertRefused(
            driver,
            withValueAt(section, path, wrong),
            path,
            `${JSON.stringify(wrong)}, a value of a wrong type`,
          );
        });
      },
    },
    {
      id: 'config.refused',
      since: '1.0',
      title: 'other errors are reported to `context.problem` with path and remedy, not thrown',
      text:
        'Examples are keys that exclude each other, unknown names, and numbers out of range. The driver reports ' +
        'each to `context.problem` with its path and a remedy. `getProviderConfig` does not throw because of the ' +
        'content of a file.',
      appliesTo: 'all',
      check: async (context: RuleContext): Promise<void> => {
        const driver = await driverOf(context);
        for (const { why, section, at } of context.fixture.configuration.refused)
          await assertRefused(driver, section, at, why);
      },
    },
    {
      id: 'config.kept',
      since: '1.0',
      title: 'the parsed configuration contains its `section`, name, pools and labels',
      text:
        'The launcher compares `section` to decide if a changed file changes the provider. The parsed ' +
        'configuration also has the name, every pool and every label of the section.',
      appliesTo: 'all',
      check: async (context: RuleContext): Promise<void> => {
        const driver = await driverOf(context);
        for (const section of context.fixture.configuration.accepted) {
          const { config } = await loadSection(driver, section);
          assert.ok(config !== undefined, 'a valid section was rejected');
          expectEqual(config.section, section, '`section` of the parsed configuration');
          expectEqual(config.name, section['name'], 'the name of the provider');
          const labels = [...config.pools.values()].flatMap((pool) => [...pool.labels.keys()]);
          expectEqual([...new Set(labels)].sort(), labelNames(section).sort(), 'labels of the pools');
          expectEqual([...config.diskImages.keys()].sort(), imageNames(section).sort(), 'disk images');
        }
      },
    },
  ],
};

export interface LoadedSection {
  readonly config: ProviderConfig | undefined;
  readonly problems: readonly string[];
  /** Paths of the problems within the section. */
  readonly places: readonly string[];
  /** Errors in the driver itself. */
  readonly broken: readonly string[];
}

async function driverOf(context: RuleContext): Promise<Driver> {
  return (await context.open()).cloud.makeDriver();
}

/** Loads a configuration file with the section as Nodepool does. */
export async function loadSection(driver: Driver, section: JsonObject): Promise<LoadedSection> {
  const file = {
    labels: fileLabelNames(section).map((name) => ({ name })),
    diskimages: imageNames(section).map((name) => ({ name })),
    providers: [section],
  };
  const result = await loadFile(JSON.stringify(file), driver);
  if (!result.ok) {
    const prefix = `${formatPath(['providers', 0])}.`;
    const places = result.problems.map(({ path }) => (path.startsWith(prefix) ? path.slice(prefix.length) : path));
    return { config: undefined, problems: result.problems.map(formatProblem), places, broken: [] };
  }
  const [config] = result.config.providers.values();
  const broken = [...result.config.brokenProviders.values()].map(({ reason }) => reason);
  return { config, problems: [], places: [], broken };
}

async function loadFile(text: string, driver: Driver): Promise<LoadResult> {
  const folder = await mkdtemp(join(tmpdir(), 'driver-kit-'));
  try {
    const file = join(folder, 'nodepool.yaml');
    await writeFile(file, text);
    return await loadConfig({ file, env: {}, zookeeper: 'optional', discoverDriver: async () => driver });
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function eachPlace(
  context: RuleContext,
  look: (driver: Driver, section: JsonObject, place: Place) => Promise<void>,
): Promise<void> {
  const driver = await driverOf(context);
  const seen = new Set<string>();
  for (const section of context.fixture.configuration.accepted) {
    for (const place of placesIn(section, driver.schema)) {
      if (seen.has(place.pattern) && place.pattern !== '') continue;
      seen.add(place.pattern);
      await look(driver, section, place);
    }
  }
}

async function assertRefused(driver: Driver, section: JsonValue, at: Path, why: string): Promise<void> {
  assert.ok(isJsonObject(section), 'a section is a mapping');
  const place = formatPath(at);
  const { problems, places, broken } = await loadSection(driver, section);
  expectEqual(broken, [], `${why} at ${place} makes the driver throw instead of reporting a problem`);
  assert.ok(problems.length > 0, `${why} at ${place} is accepted`);
  const isReported = places.some(
    (each) => each === place || each.startsWith(`${place}.`) || each.startsWith(`${place}[`),
  );
  assert.ok(isReported, `${why} at ${place} is refused, but reported elsewhere: ${problems.join('; ')}`);
}

const CANDIDATES: readonly (readonly [type: string, value: JsonValue])[] = [
  ['object', { 'driver-kit': true }],
  ['array', ['driver-kit']],
  ['boolean', true],
  ['number', 17.5],
  ['string', 'driver-kit'],
];

function wrongValueFor(schema: JsonObject): JsonValue | undefined {
  const types = typesOf(schema);
  if (types === undefined) return 'enum' in schema || 'const' in schema ? { 'driver-kit': true } : undefined;
  const allowed = (type: string): boolean => types.has(type) || (type === 'number' && types.has('integer'));
  return CANDIDATES.find(([type]) => !allowed(type))?.[1];
}
