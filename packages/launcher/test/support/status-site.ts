/** A launcher of a test world with its web endpoint, whose status, explanations and metrics tests read. */

import { expect } from '@jest/globals';
import type { NodepoolConfig } from '@nodepool/config';
import { silentLogger, type JsonObject } from '@nodepool/core';
import { MetricsRegistry, openPrometheus } from '@nodepool/daemon';
import { DecisionLog, RecentFailures, Recorder } from '@nodepool/status';
import { createWebServer, type WebServer } from '@nodepool/status/web';
import type { RunningLauncher, World } from './world.js';

export interface SiteOptions {
  readonly hostname?: string;
  /** Replaces parts of the launcher's configuration. */
  readonly config?: Partial<NodepoolConfig>;
  /** Replaces parts of the configuration that the status shows. */
  readonly shownConfig?: Partial<NodepoolConfig>;
}

export class StatusSite {
  private constructor(
    private readonly world: World,
    readonly running: RunningLauncher,
    private readonly server: WebServer,
    private readonly recorder: Recorder,
    private readonly port: number,
    /** Failures of metrics. */
    private readonly errors: readonly unknown[],
  ) {}

  static async start(world: World, providers: readonly JsonObject[], options: SiteOptions = {}): Promise<StatusSite> {
    const { hostname = 'launcher1', config: more = {}, shownConfig = {} } = options;
    const { clock } = world;
    const decisions = new DecisionLog({ clock });
    const errors: unknown[] = [];
    const onError = (error: unknown): void => void errors.push(error);
    const registry = new MetricsRegistry({ clock, statsd: undefined, prometheus: openPrometheus(onError), onError });
    let launcher: RunningLauncher | undefined;
    let recorder: Recorder | undefined;
    world.recorder = (store) =>
      (recorder = new Recorder({
        ...{ store, clock, log: silentLogger, metrics: registry, stateDir: undefined },
        activity: () => launcher?.launcher.activity() ?? [],
        summaries: () => launcher?.launcher.summaries() ?? [],
      }));
    world.observation = { decisions, metrics: registry };
    const running = (launcher = await world.launcher(providers, hostname, more));
    world.observation = {};
    world.recorder = undefined;
    if (recorder === undefined) throw new Error('the world has made no recorder');
    const config = world.config(providers, { ...more, ...shownConfig });
    const server = createWebServer({
      ...{ store: running.store, log: silentLogger, clock, isReady: () => true, metrics: registry },
      explain: world.explanation(running, decisions, hostname),
      status: {
        ...{ hostname, version: '0.0.0', recorder, config: () => config, problems: () => [] },
        refusedSince: () => undefined,
        failures: new RecentFailures(clock),
        capacity: () => running.launcher.capacity(),
        eventLoopDelay: () => ({ p99: 0.002 }),
      },
    });
    const { port } = await server.start({ port: 0, address: '127.0.0.1', otherAddress: '' });
    return new StatusSite(world, running, server, recorder, port, errors);
  }

  async stop(): Promise<void> {
    await this.server.stop();
    await this.recorder.stop();
    expect(this.errors).toEqual([]);
  }

  /** Resolves with a document below `/status/v1`. Answers are cached for a second. */
  async get<T>(path: string): Promise<T> {
    await this.world.clock.advance(1001);
    const response = await this.fetch(`/status/v1/${path}`, 'application/json');
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toContain('application/json');
    return (await response.json()) as T;
  }

  /** Resolves with the status code and the message of an error. */
  async error(path: string): Promise<[number, string]> {
    const response = await this.fetch(`/status/v1/${path}`, 'application/json');
    return [response.status, ((await response.json()) as { message: string }).message];
  }

  /** Resolves with the lines of the metrics that match. */
  async metrics(pattern: RegExp): Promise<string[]> {
    await this.world.clock.advance(1001);
    const text = await (await this.fetch('/metrics', 'text/plain')).text();
    return text.split('\n').filter((line) => pattern.test(line) && !line.startsWith('#'));
  }

  async explain(subject: string): Promise<string> {
    return (await this.fetch(`/explain/${subject}`, 'text/plain')).text();
  }

  fetch(path: string, accept: string, more: Readonly<Record<string, string>> = {}): Promise<Response> {
    const headers = { Connection: 'close', Accept: accept, ...more };
    return fetch(`http://127.0.0.1:${this.port}${path}`, { headers });
  }
}
