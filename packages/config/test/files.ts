/** Configuration files of tests, in a folder that is deleted after the test. */

import { mkdtempSync, realpathSync, rmSync, writeFileSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import {
  loadConfig,
  type ConfigProblem,
  type LoadOptions,
  type LoadResult,
  type NodepoolConfig,
} from '@nodepool/config';
import { standIns } from './stand-in-drivers.js';

export class TestFolder {
  readonly path = realpathSync(mkdtempSync(join(tmpdir(), 'nodepool-config-')));

  write(name: string, text: string | Uint8Array): string {
    const file = join(this.path, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    return file;
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** A configuration with one label, one disk image and one provider. */
export const PROVIDER = `
labels: [{name: small}]
diskimages: [{name: noble}]
providers:
  - name: cloud
    cloud: here
    diskimages: [{name: noble}]
    pools:
      - name: main
        labels:
          - {name: small, diskimage: noble, min-ram: 1}
`;

/** Loads a file with this text; ZooKeeper may be missing from it. */
export async function loadText(
  text: string,
  options: Partial<LoadOptions> & { secure?: string } = {},
): Promise<LoadResult> {
  const folder = new TestFolder();
  try {
    const file = folder.write('nodepool.yaml', text);
    const secureFile = options.secure === undefined ? undefined : folder.write('secure.yaml', options.secure);
    const { secure: _secure, ...rest } = options;
    return await loadConfig({ file, secureFile, env: {}, zookeeper: 'optional', discoverDriver: standIns, ...rest });
  } finally {
    folder.remove();
  }
}

export async function configOf(
  text: string,
  options: Partial<LoadOptions> & { secure?: string } = {},
): Promise<NodepoolConfig> {
  const result = await loadText(text, options);
  if (!result.ok) throw new Error(`refused: ${JSON.stringify(result.problems)}`);
  return result.config;
}

export async function problemsOf(
  text: string,
  options: Partial<LoadOptions> & { secure?: string } = {},
): Promise<readonly ConfigProblem[]> {
  const result = await loadText(text, options);
  return result.ok ? [] : result.problems;
}

/** Returns `line:column path` of each problem. */
export function placesOf(problems: readonly ConfigProblem[]): string[] {
  return problems.map(({ line, column, path }) => `${line}:${column} ${path}`);
}
