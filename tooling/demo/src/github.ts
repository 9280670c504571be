/** The demonstration of GitHub Actions: a simulated GitHub and a bridge, and one job on its way. */

import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { sleep, systemClock, systemRandom } from '@nodepool/core';
import { configFileOf, programPath, startBridge, type Narrator, type Program } from '@nodepool/harness';
import { startSimulatedGithub, type SimulatedGithub } from '@nodepool/simulated-github';
import { LABEL, nodeCommand, type DemoEnvironment } from './environment.js';

const DEADLINE_MS = 120_000;
const LOOK_MS = 50;

export class GithubDemo {
  private constructor(
    private readonly environment: DemoEnvironment,
    private readonly github: SimulatedGithub,
    private readonly bridge: Program,
  ) {}

  /** Starts a simulated GitHub and a bridge. If it rejects, it has stopped what it started. */
  static async start(environment: DemoEnvironment, narrator: Narrator): Promise<GithubDemo> {
    const { folder, identity } = environment;
    if (identity === undefined) throw new Error('it needs openssh-client and openssh-server (Debian: apt-get install)');
    const github = await startSimulatedGithub({
      ...{ clock: systemClock, random: systemRandom },
      print: ({ text }) => narrator.say(`GitHub: ${text}`),
    });
    try {
      narrator.say(`a simulated GitHub serves ${github.url}/acme`);
      writeRunner(folder, github.runner);
      const settings = settingsFor(github, folder, identity);
      const bridge = await startBridge({ folder, config: readFileSync(configFileOf({ folder }), 'utf8'), settings });
      narrator.say(`nodepool-github runs (process ${bridge.pid}) with ${join(folder, 'bridge-github.yaml')}`);
      return new GithubDemo(environment, github, bridge);
    } catch (error) {
      await github.close();
      throw error;
    }
  }

  /** Queues a job and resolves once it has ended well. */
  async run(narrator: Narrator, interrupted: AbortSignal): Promise<void> {
    const number = this.github.queueJob({
      repository: 'acme/app',
      labels: ['linux'],
      run: 'uname -a',
      durationMs: 1000,
    });
    await this.bridge.while('serves the job', DEADLINE_MS, async (signal) => {
      const ended = AbortSignal.any([signal, interrupted]);
      while (this.job(number)?.state !== 'completed' || this.github.inspect.runners().length > 0) {
        await sleep(systemClock, LOOK_MS, ended);
      }
    });
    const { result, queueTime = '', runnerAssignTime = '' } = this.job(number) ?? {};
    if (result !== 'succeeded') throw new Error(`the job ended: ${result ?? 'unknown'}`);
    const seconds = (Date.parse(runnerAssignTime) - Date.parse(queueTime)) / 1000;
    narrator.say(`the job had its runner after ${seconds.toFixed(1)} s`);
  }

  /** Returns addresses, and commands to paste into another terminal. */
  whereToLook(): string {
    const { folder } = this.environment;
    const [job] = this.github.inspect.jobs();
    const nodepool = `${nodeCommand()} ${relative(process.cwd(), programPath('nodepool'))} -c ${configFileOf({ folder })}`;
    return `
For GitHub Actions:

  queue jobs         ${this.github.controlUrl}/
  bridge's log       tail -f ${this.bridge.logFile}
  explain a job      ${nodepool} explain job ${this.github.url}/acme/app/actions/runs/${job?.runId ?? 'RUN'}
`;
  }

  async stop(): Promise<void> {
    await this.bridge.stop();
    await this.github.close();
  }

  private job(number: number): ReturnType<SimulatedGithub['inspect']['jobs']>[number] | undefined {
    return this.github.inspect.jobs().find((job) => job.number === number);
  }
}

function settingsFor(github: SimulatedGithub, folder: string, identity: string): object {
  const app = {
    ...{ 'client-id': github.clientId, 'installation-id': github.installations['acme'] },
    'private-key': github.appKeyFile,
  };
  const scaleSet = {
    ...{ name: 'linux', 'node-label': LABEL, 'max-runners': 5, identity, 'runner-folder': join(folder, 'runner') },
    environment: { RUNNER_ALLOW_RUNASROOT: '1' },
  };
  return { installations: [{ name: 'acme', url: `${github.url}/acme`, app, 'scale-sets': [scaleSet] }] };
}

/** The nodes of the demonstration share this host, so each runner gets a folder of its own. */
function writeRunner(folder: string, runner: string): void {
  mkdirSync(join(folder, 'runner'));
  const script = `#!/bin/sh\nd=$(mktemp -d '${folder}/XXXXXX') && cp '${runner}' "$d/run.sh" && exec "$d/run.sh" "$@"\n`;
  writeFileSync(join(folder, 'runner', 'run.sh'), script);
  chmodSync(join(folder, 'runner', 'run.sh'), 0o755);
}
