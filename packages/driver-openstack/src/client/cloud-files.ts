/**
 * Finds, reads and merges the files in which OpenStack tools configure clouds. Search order and file names are those of
 * openstacksdk ("Configuring OpenStack SDK Applications"): only the first existing file of each kind is read.
 */

import {
  ConfigurationError,
  fileFaultOf,
  isJsonObject,
  objectAt,
  stringAt,
  type JsonObject,
  type JsonValue,
} from '@nodepool/core';
import { LineIndex, parseYaml } from '@nodepool/pyyaml';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Directories and environment in which files are searched; tests replace those of the process. */
export interface Environment {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Working directory. */
  readonly cwd: string;
  readonly home: string;
  /** System-wide directories, e.g. `/etc/openstack`. */
  readonly siteDirectories: readonly string[];
}

interface CloudsFile {
  readonly path: string;
  readonly content: JsonObject;
}

export interface CloudSection {
  readonly section: JsonObject;
  /** Origin for messages: a path or the environment. */
  readonly source: string;
}

interface FileKind {
  readonly stem: string;
  readonly variable: string;
}

const CLOUDS: FileKind = { stem: 'clouds', variable: 'OS_CLIENT_CONFIG_FILE' };
const SECURE: FileKind = { stem: 'secure', variable: 'OS_CLIENT_SECURE_FILE' };
const VENDORS: FileKind = { stem: 'clouds-public', variable: 'OS_CLIENT_VENDOR_FILE' };
const EXTENSIONS = ['yaml', 'yml', 'json'];

/** Name of the cloud that the variables `OS_AUTH_URL`, `OS_USERNAME`, … describe. */
const ENVIRONMENT_CLOUD = 'envvars';
/** Variables that locate files or select a cloud, but do not configure one. */
const OTHER_OS_VARIABLES = new Set(['OS_CLOUD', 'OS_CLOUD_NAME', 'OS_IDENTITY_API_VERSION']);

/**
 * Merges the configuration of a cloud: its vendor's profile, overridden by its section in `clouds.yaml`, overridden by
 * `secure.yaml`. Throws `ConfigurationError` with the file and the key.
 */
export function findCloud(name: string, where: Environment): CloudSection {
  const clouds = readFirst(CLOUDS, where);
  const found = clouds === undefined ? undefined : objectAt(objectAt(clouds.content, 'clouds') ?? {}, name);
  if (clouds === undefined || found === undefined) {
    const fromEnvironment = name === (where.env['OS_CLOUD_NAME'] ?? ENVIRONMENT_CLOUD) && cloudOfEnvironment(where);
    if (fromEnvironment) return fromEnvironment;
    throw unknownCloud(name, clouds, where);
  }
  const secure = readFirst(SECURE, where);
  const secrets = objectAt(objectAt(secure?.content ?? {}, 'clouds') ?? {}, name) ?? {};
  const own = merged(withUnderscores(found), withUnderscores(secrets));
  const { regions, ...vendor } = vendorProfile(own, clouds.path, where);
  // A region in the cloud's own section overrides its vendor's list.
  const listed = regions === undefined || 'region_name' in own ? {} : { regions };
  return { section: merged({ ...vendor, ...listed }, own), source: clouds.path };
}

function unknownCloud(name: string, clouds: CloudsFile | undefined, where: Environment): ConfigurationError {
  if (clouds === undefined) {
    const places = candidates(CLOUDS, where).filter((path) => path.endsWith('.yaml'));
    return new ConfigurationError(
      `cloud ${JSON.stringify(name)}: there is no clouds.yaml; looked for ${places.join(', ')}; OS_CLIENT_CONFIG_FILE can name another`,
    );
  }
  const known = Object.keys(objectAt(clouds.content, 'clouds') ?? {}).join(', ');
  return new ConfigurationError(
    `${clouds.path}: there is no cloud ${JSON.stringify(name)} under "clouds"; there are: ${known === '' ? 'none' : known}`,
  );
}

function candidates({ stem, variable }: FileKind, { env, cwd, home, siteDirectories }: Environment): string[] {
  const named = env[variable];
  const userConfig = env['XDG_CONFIG_HOME'] ?? join(home, '.config');
  const directories = [cwd, join(userConfig, 'openstack'), ...siteDirectories];
  const usual = directories.flatMap((directory) =>
    EXTENSIONS.map((extension) => join(directory, `${stem}.${extension}`)),
  );
  return named === undefined || named === '' ? usual : [named, ...usual];
}

function readFirst(kind: FileKind, where: Environment): CloudsFile | undefined {
  const path = candidates(kind, where).find((candidate) => existsSync(candidate));
  if (path === undefined) return undefined;
  const content = readYaml(path);
  if (content === null) return { path, content: {} };
  if (!isJsonObject(content)) throw new ConfigurationError(`${path}: expected a mapping with the key "clouds"`);
  return { path, content };
}

function readYaml(path: string): JsonValue {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new ConfigurationError(`${path} cannot be read: ${fileFaultOf(error)}`, {
      cause: error,
    });
  }
  const { document, problems } = parseYaml(text);
  const [problem] = problems;
  if (problem === undefined) return document?.value ?? null;
  const { line, column } = new LineIndex(text).position(problem.span.start);
  throw new ConfigurationError(`${path}:${line}:${column}: expected ${problem.expected}, found ${problem.found}`);
}

/** Returns the profile named by `profile` (in old files `cloud`), from a vendor file. */
function vendorProfile(cloud: JsonObject, path: string, where: Environment): JsonObject {
  const name = stringAt(cloud, 'profile') ?? stringAt(cloud, 'cloud');
  if (name === undefined) return {};
  const vendors = readFirst(VENDORS, where);
  const profile = objectAt(objectAt(vendors?.content ?? {}, 'public-clouds') ?? {}, name);
  if (profile !== undefined) return withUnderscores(profile);
  // A cloud with its own `auth_url` needs no profile, which would only add regions and defaults.
  if (stringAt(objectAt(cloud, 'auth') ?? {}, 'auth_url') !== undefined) return {};
  const file = vendors?.path ?? candidates(VENDORS, where).find((candidate) => candidate.endsWith('.yaml')) ?? '';
  throw new ConfigurationError(
    `${path}: profile ${JSON.stringify(name)} is not known, and there is no auth.auth_url; add the profile to ${file} under "public-clouds", or the key to the cloud`,
  );
}

function cloudOfEnvironment({ env }: Environment): CloudSection | undefined {
  const section: Record<string, string> = {};
  for (const [variable, value] of Object.entries(env)) {
    const ofCloud =
      variable.startsWith('OS_') && !variable.startsWith('OS_CLIENT_') && !OTHER_OS_VARIABLES.has(variable);
    if (ofCloud && value !== undefined && value !== '') section[variable.slice(3).toLowerCase()] = value;
  }
  return section['auth_url'] === undefined ? undefined : { section, source: 'the environment (OS_*)' };
}

function withUnderscores(section: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(section).map(([key, value]) => [
      key.replaceAll('-', '_'),
      isJsonObject(value) ? withUnderscores(value) : value,
    ]),
  );
}

/** Merges `over` into `under`, nested mappings key by key. */
export function merged(under: JsonObject, over: JsonObject): JsonObject {
  const result: Record<string, JsonValue> = { ...under };
  for (const [key, value] of Object.entries(over)) {
    const below = result[key];
    result[key] = isJsonObject(below) && isJsonObject(value) ? merged(below, value) : value;
  }
  return result;
}
