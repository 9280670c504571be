/** The scale sets of the settings, and what they share: clients of GitHub, ssh, capacity. */

import { readFile as readTextFile } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Clock, Logger, Metrics, RandomSource, TaskSupervisor } from '@nodepool/core';
import { superviseTasks } from '@nodepool/daemon';
import { openRequestor, type Requestor } from '@nodepool/requestor';
import { openStore, type Store } from '@nodepool/store';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { CapacitySource, type AskLauncher } from './capacity/capacity-source.js';
import type { BridgeContext } from './context.js';
import { ActionsService } from './github/actions-service.js';
import { Connection } from './github/connection.js';
import { HttpClient } from './github/http.js';
import { CALLS } from './metrics.js';
import { SshProcesses, type RunnerProcesses } from './runners/runner-process.js';
import { RepositoryLabels } from './scale-set/phases.js';
import { ScaleSet } from './scale-set/scale-set.js';
import type { InstallationSettings, ScaleSetSettings, Settings } from './settings/settings.js';

export const REQUESTOR_NAME = 'nodepool-github';

const COMPARE_MS = 30_000;

export interface BridgeOptions {
  readonly zooKeeper: ZooKeeper;
  readonly settings: Settings;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Host and process. */
  readonly identifier: string;
  readonly version: string;
  /** Environment of ssh. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Interval of the comparison with GitHub (ms). Default 30 s. */
  readonly compareMs?: number;
  /** Default: HTTP to the web endpoints of launchers. */
  readonly askLauncher?: AskLauncher;
  /** Default: ssh. */
  readonly processes?: RunnerProcesses;
  /** Sends messages to GitHub. Default: the platform's `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
  /** Reads keys and tokens. Default: from the file system. */
  readonly readFile?: (file: string) => Promise<string>;
}

interface Installation {
  settings: InstallationSettings;
  service: ActionsService;
}

export class Bridge {
  readonly store: Store;
  readonly tasks: TaskSupervisor;
  private readonly context: BridgeContext;
  private readonly requestor: Requestor;
  private readonly capacity: CapacitySource;
  private readonly installations = new Map<string, Installation>();
  private readonly sets = new Map<string, ScaleSet>();
  private readonly processes: RunnerProcesses;

  constructor(private readonly options: BridgeOptions) {
    const { zooKeeper, clock, random, log, metrics, identifier, version, askLauncher } = options;
    const { compareMs = COMPARE_MS } = options;
    this.tasks = superviseTasks(clock, log);
    const { tasks } = this;
    this.store = openStore(zooKeeper, { clock, random, identifier, log });
    const { store } = this;
    this.requestor = openRequestor(zooKeeper, { name: REQUESTOR_NAME, clock, random, log });
    this.capacity = new CapacitySource({
      ...{ store, clock, random, log, tasks },
      ...(askLauncher === undefined ? {} : { ask: askLauncher }),
    });
    this.processes = options.processes ?? new SshProcesses(options.env ?? {}, clock);
    this.context = {
      ...{ zooKeeper, store, requestor: this.requestor, clock, random, log, metrics, tasks, capacity: this.capacity },
      repositories: new RepositoryLabels(),
      ...{ identifier, version, compareMs, processes: this.processes },
    };
  }

  /** True once the records of ZooKeeper are complete. */
  get ready(): boolean {
    return this.store.complete && this.store.zooKeeper.state === 'connected';
  }

  start(): void {
    this.store.start();
    this.capacity.start();
    this.apply(this.options.settings);
  }

  /** Serves the scale sets of changed settings. Removed ones end once their runners have ended. */
  apply(settings: Settings): void {
    for (const installation of settings.installations) this.applyInstallation(installation);
    const names = new Set(settings.installations.map(({ name }) => name));
    for (const [name, installation] of this.installations) {
      if (!names.has(name)) installation.settings = { ...installation.settings, scaleSets: [] };
    }
    for (const set of this.sets.values()) set.apply();
    for (const { name, scaleSets } of settings.installations) for (const set of scaleSets) this.add(name, set.name);
  }

  dump(to: Logger): void {
    for (const set of this.sets.values()) set.dump(to);
  }

  /** Leaves runners, requests and nodes to the next bridge. */
  async stop(): Promise<void> {
    await Promise.all([...this.sets.values()].map((set) => set.stop()));
    await this.capacity.stop();
    this.processes.close();
    await this.requestor.close();
    this.store.close();
  }

  private applyInstallation(settings: InstallationSettings): void {
    const known = this.installations.get(settings.name);
    if (known === undefined) {
      this.installations.set(settings.name, { settings, service: this.serviceFor(settings) });
      return;
    }
    const { scope, credentials } = known.settings;
    known.settings = settings;
    if (isDeepStrictEqual([scope, credentials], [settings.scope, settings.credentials])) return;
    known.service = this.serviceFor(settings);
    // Scale sets get the new client with their next term.
    this.options.log.info('The login of an installation has changed', { installation: settings.name });
    for (const [key, set] of this.sets) if (key.startsWith(`${settings.name}/`)) this.restart(key, set);
  }

  private add(installation: string, name: string): void {
    const key = `${installation}/${name}`;
    const shared = this.installations.get(installation);
    if (this.sets.has(key) || shared === undefined) return;
    const set = new ScaleSet({
      context: this.context,
      name,
      installation: () => shared.settings,
      settings: () => this.settingsOf(shared, name),
      service: shared.service,
      onRemoved: () => this.remove(key),
    });
    this.sets.set(key, set);
    set.start();
  }

  private settingsOf({ settings }: Installation, name: string): ScaleSetSettings | undefined {
    return settings.scaleSets.find((set) => set.name === name);
  }

  private remove(key: string): void {
    const set = this.sets.get(key);
    if (set === undefined) return;
    this.sets.delete(key);
    this.tasks.run(`end of the scale set ${key}`, () => set.stop());
  }

  private restart(key: string, set: ScaleSet): void {
    this.sets.delete(key);
    const [installation = '', name = ''] = key.split('/');
    this.tasks.run(`restart of the scale set ${key}`, async () => {
      await set.stop();
      this.add(installation, name);
    });
  }

  private serviceFor({ name, scope, credentials }: InstallationSettings): ActionsService {
    const {
      clock,
      log,
      metrics,
      version,
      fetch,
      readFile = (file: string) => readTextFile(file, 'utf8'),
    } = this.options;
    const http = new HttpClient(
      clock,
      (operation, status, ms) => {
        metrics.observe(CALLS, { installation: name, operation, status: String(status ?? 'none') }, ms);
      },
      fetch,
    );
    const userAgent = JSON.stringify({
      ...{ system: REQUESTOR_NAME, version, commit_sha: 'unknown', scale_set_id: 0, subsystem: 'bridge' },
      ...{ build_version: version, build_commit_sha: 'unknown', kind: 'scaleset' },
    });
    const own = log.with({ installation: name });
    return new ActionsService(new Connection({ scope, credentials, http, clock, log: own, readFile, userAgent }));
  }
}
