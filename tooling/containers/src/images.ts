/** Compares the packages inside an image with the image's list of them, and looks for tools of developers. */

import { isJsonObject, objectAt, stringAt, type JsonObject } from '@nodepool/core';
import type { Podman } from './podman.js';

export const TARGETS = ['launcher', 'builder', 'gateway', 'bridge-github', 'cli'] as const;

/** Tools of the workspace that a site must not install. */
const TOOLS = ['typescript', 'jest', 'turbo', 'eslint', 'oxlint', 'prettier', 'esbuild', 'typedoc', '@types/node'];

const LIST = 'cd /opt/nodepool && cat nodepool.cdx.json node_modules/.package-lock.json && id -un';

/** Resolves with the problems of an image, and with its size in MB for the log. */
export async function checkImage(podman: Podman, target: string): Promise<{ problems: string[]; megabytes: number }> {
  const image = `localhost/nodepool-${target}`;
  const output = await podman.run(['run', '--rm', '--network=none', '--entrypoint=sh', image, '-euc', LIST]);
  const [bill, lock, user] = split(output);
  const installed = packagesOf(lock);
  const listed = componentsOf(bill);
  const problems = [
    ...(user === 'nodepool' ? [] : [`runs as the user ${user}`]),
    ...without(listed, installed).map((name) => `does not list the installed ${name}`),
    ...without(installed, listed).map((name) => `lists ${name}, which is not installed`),
    ...TOOLS.filter((tool) => [...installed].some((name) => name.startsWith(`${tool}@`))).map(
      (tool) => `contains the development tool ${tool}`,
    ),
  ];
  const size = Number(await podman.run(['image', 'inspect', '--format={{.Size}}', image]));
  return { problems: problems.map((problem) => `${image} ${problem}`), megabytes: Math.round(size / 1e6) };
}

/** Splits the two documents, which begin and end at the start of a line, and the name of the user. */
function split(output: string): readonly [JsonObject, JsonObject, string] {
  const [, first = '', second = '', user = ''] = /^(\{.*?^\})\s*(\{.*?^\})\s*(\S+)\s*$/ms.exec(output) ?? [];
  return [parsed(first), parsed(second), user];
}

function parsed(text: string): JsonObject {
  const value: unknown = JSON.parse(text);
  if (!isJsonObject(value)) throw new Error('the image has no lists of its packages');
  return value;
}

/** Returns `name@version` of what npm has installed; an alias has the name of its package. */
function packagesOf(lock: JsonObject): Set<string> {
  const entries = Object.entries(objectAt(lock, 'packages') ?? {});
  return new Set(
    entries.map(([path, entry]) => {
      const noted = isJsonObject(entry) ? entry : {};
      const name = stringAt(noted, 'name') ?? path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
      return `${name}@${stringAt(noted, 'version') ?? ''}`;
    }),
  );
}

/** Returns `name@version` of the addresses of packages, e.g. `pkg:npm/%40smithy/core@3.0.0`. */
function componentsOf(bill: JsonObject): Set<string> {
  const components = bill['components'];
  if (!Array.isArray(components)) throw new Error('the list of packages has no components');
  const urls = components.filter(isJsonObject).map((each) => stringAt(each, 'purl') ?? '');
  return new Set(urls.map((url) => decodeURIComponent(url.replace(/^pkg:npm\//, ''))));
}

function without(present: ReadonlySet<string>, wanted: ReadonlySet<string>): string[] {
  return [...wanted].filter((name) => !present.has(name));
}
