/** A site that serves jobs of GitHub Actions: bridges as processes, a simulated GitHub, and nodes with OpenSSH. */

import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { systemClock, systemRandom } from '@nodepool/core';
import { configFileOf, startBridge, type Program } from '@nodepool/harness';
import { startSimulatedGithub, type SimulatedGithub } from '@nodepool/simulated-github';
import { sleep } from '@nodepool/zookeeper';
import { Site, type LauncherSetup } from './site.js';

const LOOK_MS = 100;
/** Repositories of the simulated GitHub. */
export const REPOSITORIES = ['app', 'web', 'docs', 'infra', 'tools'].map((name) => `acme/${name}`);

interface SiteSize {
  /** Number of nodes that are ready in advance. */
  readonly warm: number;
  readonly maxServers: number;
}

export class GithubSite {
  private readonly bridges: Program[] = [];

  private constructor(
    readonly site: Site,
    readonly github: SimulatedGithub,
    private readonly folder: string,
    private readonly key: string,
    private readonly size: SiteSize,
    launcher: Program,
  ) {
    this.launcher = launcher;
  }

  launcher: Program;

  static async start(warm: number, maxServers: number): Promise<GithubSite> {
    const size = { warm, maxServers };
    const folder = mkdtempSync(join(tmpdir(), 'nodepool-github-e2e-'));
    const key = join(folder, 'key');
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]);
    const site = await Site.start({ maxSessionTimeout: 10_000 });
    const github = await startSimulatedGithub({ clock: systemClock, random: systemRandom });
    writeRunner(folder, github.runner);
    const launcher = await site.launcher(launcherSetup(key, size));
    return new GithubSite(site, github, folder, key, size, launcher);
  }

  /** Kills the launcher and starts another one. */
  async replaceLauncher(): Promise<void> {
    await this.launcher.kill();
    this.launcher = await this.site.launcher(launcherSetup(this.key, this.size));
  }

  async bridge(maxRunners: number): Promise<Program> {
    const { github, site, launcher } = this;
    const settings = {
      installations: [
        {
          ...{ name: 'acme', url: `${github.url}/acme` },
          app: {
            'client-id': github.clientId,
            'installation-id': github.installations['acme'],
            'private-key': github.appKeyFile,
          },
          'scale-sets': [
            {
              ...{ name: 'linux', 'node-label': 'debian', 'max-runners': maxRunners, identity: this.key },
              ...{ 'runner-folder': join(this.folder, 'runner'), environment: { RUNNER_ALLOW_RUNASROOT: '1' } },
            },
          ],
        },
      ],
    };
    const config = readFileSync(configFileOf({ folder: site.folder, name: launcher.name }), 'utf8');
    const name = `bridge-${this.bridges.length + 1}`;
    const bridge = await startBridge({ name, folder: site.folder, config, settings });
    this.bridges.push(bridge);
    return bridge;
  }

  /** Resolves once the condition is met, while the process runs. */
  async until(program: Program, what: string, deadlineMs: number, isMet: () => boolean): Promise<void> {
    await program.while(what, deadlineMs, async (signal) => {
      while (!isMet()) await sleep(systemClock, LOOK_MS, signal);
    });
  }

  count(...states: readonly string[]): number {
    return this.github.inspect.jobs().filter(({ state }) => states.includes(state)).length;
  }

  /** Stops all programs: one that runs would keep the tests from their end. */
  async stop(): Promise<void> {
    await Promise.all(this.bridges.filter(({ exit }) => exit === undefined).map((bridge) => bridge.stop()));
    await this.site.stop();
    await this.github.close();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 20 });
  }
}

function launcherSetup(key: string, { warm, maxServers }: SiteSize): LauncherSetup {
  const cloud = { ssh: true, 'authorized-keys': `${key}.pub` };
  const provider = { cloud, hostKeyChecking: true, username: userInfo().username, maxServers };
  return { providers: [provider], minReady: { debian: warm } };
}

/** The nodes share this host, so each runner gets a folder of its own. */
function writeRunner(folder: string, runner: string): void {
  const own = join(folder, 'runner');
  mkdirSync(join(folder, 'work'));
  mkdirSync(own);
  const script = `#!/bin/sh\nd=$(mktemp -d '${folder}/work/XXXXXX') && cp '${runner}' "$d/run.sh" && exec "$d/run.sh" "$@"\n`;
  writeFileSync(join(own, 'run.sh'), script);
  chmodSync(join(own, 'run.sh'), 0o755);
}
