/** A local registry for publications, which proxies all other packages from the usual registry. */

import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePorts } from '@nodepool/dev-zookeeper';
import { Program } from '@nodepool/harness';
import { QUIET_INSTALL, run } from '../command.js';
import { untilAnswered } from './probe.js';

/**
 * Installed on demand, because it would double the workspace's lock file. This is the last version for Node.js 20. The
 * override replaces a dependency on a tag that some mirrors lack; its code is unused here.
 */
const VERDACCIO = { version: '6.8.0', overrides: { 'node-fetch': '^2.7.0' } } as const;
const START_TIMEOUT_MS = 60_000;

export interface Registry {
  readonly url: string;
  /** Environment for npm, pnpm and their child processes: this registry, separate caches, and permission to publish. */
  readonly env: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

/** Starts a registry. `tools` is the folder that keeps the program between runs; `folder` is for publications. */
export async function startRegistry(tools: string, folder: string): Promise<Registry> {
  const program = await installed(join(tools, `verdaccio-${VERDACCIO.version}`));
  const upstream = (await run('npm', ['config', 'get', 'registry'], { cwd: tools })).trim();
  const [port = 0] = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  await mkdir(folder, { recursive: true });
  const config = join(folder, 'verdaccio.yaml');
  await writeFile(config, JSON.stringify(configuration(folder, upstream), undefined, 2));
  const npmrc = join(folder, 'npmrc');
  // Publication requires a login, but any user is accepted.
  await writeFile(npmrc, `registry=${url}/\n//127.0.0.1:${port}/:_authToken=rehearsal\n`);
  const server = await Program.start({
    name: 'registry',
    command: process.execPath,
    args: [program, '--config', config, '--listen', url],
    logFile: join(folder, 'verdaccio.log'),
    cwd: folder,
  });
  await server.while('answers', START_TIMEOUT_MS, (signal) => untilAnswered(`${url}/-/ping`, signal));
  const env = {
    ...QUIET_INSTALL,
    npm_config_userconfig: npmrc,
    npm_config_registry: `${url}/`,
    npm_config_cache: join(folder, 'npm-cache'),
    npm_config_store_dir: join(folder, 'pnpm-store'),
    // A cached list lacks recent publications.
    npm_config_prefer_offline: 'false',
    npm_config_minimum_release_age: '0',
  };
  const stop = async (): Promise<void> => {
    await server.stop();
  };
  return { url, env, stop };
}

/** Installs the program if it is missing, and returns its path. */
async function installed(folder: string): Promise<string> {
  const program = join('node_modules', 'verdaccio', 'bin', 'verdaccio');
  if (existsSync(join(folder, program))) return join(folder, program);
  const attempt = `${folder}.installing`;
  await rm(attempt, { recursive: true, force: true });
  await mkdir(attempt, { recursive: true });
  const { version, overrides } = VERDACCIO;
  const manifest = { name: 'registry', private: true, dependencies: { verdaccio: version }, overrides };
  await writeFile(join(attempt, 'package.json'), JSON.stringify(manifest));
  await run('npm', ['install', '--ignore-scripts'], { cwd: attempt, env: QUIET_INSTALL });
  // The final name is only used after a complete installation.
  await rename(attempt, folder);
  return join(folder, program);
}

function configuration(folder: string, upstream: string): object {
  const allUsers = { access: '$all', publish: '$all', unpublish: '$all' };
  return {
    storage: join(folder, 'packages'),
    auth: { htpasswd: { file: join(folder, 'htpasswd') } },
    uplinks: { upstream: { url: upstream, maxage: '60m', timeout: '60s' } },
    packages: {
      '@nodepool/*': allUsers,
      'nodepool-driver-*': allUsers,
      '**': { access: '$all', proxy: 'upstream' },
    },
    web: { enable: false },
    max_body_size: '100mb',
    log: { type: 'stdout', format: 'pretty', level: 'warn' },
  };
}
