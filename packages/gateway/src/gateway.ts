/** A gateway: the API on the leases of an ensemble. Several gateways can serve one ensemble. */

import { readFile } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Logger, TaskSupervisor } from '@nodepool/core';
import type { LiveSettings } from '@nodepool/daemon';
import type { Store } from '@nodepool/store';
import { Authenticator } from './auth/authenticator.js';
import { IssuerTokens } from './auth/issuer-tokens.js';
import { EventStreams } from './http/event-streams.js';
import { GatewayServer, type Certificate } from './http/gateway-server.js';
import { addLeaseRoutes } from './http/lease-routes.js';
import { Leases, type LeasesOptions } from './leases/leases.js';
import type { Settings } from './settings/settings.js';

export interface GatewayOptions extends Omit<LeasesOptions, 'retention'> {
  readonly settings: LiveSettings<Settings>;
}

export class Gateway {
  private readonly leases: Leases;
  private readonly streams: EventStreams;
  private readonly stopping = new AbortController();
  private server: GatewayServer | undefined;

  constructor(private readonly options: GatewayOptions) {
    const { clock, metrics, settings } = options;
    this.streams = new EventStreams({ clock, metrics, limits: () => settings.current.limits });
    const retention = (): number => settings.current.retention;
    this.leases = new Leases({ ...options, retention }, (id) => this.streams.changed(id));
    // Pools that come, go or pause change the reasons of waiting leases.
    this.store.components.onChange(() => this.streams.allChanged());
  }

  get store(): Store {
    return this.leases.store;
  }

  get tasks(): TaskSupervisor {
    return this.leases.tasks;
  }

  /** True if the gateway sees all records. */
  get ready(): boolean {
    return this.leases.ready;
  }

  /** Starts to listen, and resolves with the port. Requests are refused until the gateway is ready. */
  async start(): Promise<{ readonly port: number }> {
    const { settings, log, clock, metrics } = this.options;
    const { streams, leases } = this;
    const { table, service, store, index } = leases;
    const issuers = new IssuerTokens({ issuers: () => settings.current.issuers, clock, log });
    const authenticator = new Authenticator(() => settings.current, issuers);
    const server = new GatewayServer({
      ...{ clock, log, metrics },
      limits: () => settings.current.limits,
      certificate: await certificateOf(settings.current),
      authenticate: (authorization) => authenticator.authenticate(authorization),
      isReady: () => this.ready,
      routes: (app, principalOf) =>
        addLeaseRoutes(app, {
          ...{ table, service, streams, principalOf },
          sources: { store, index },
          audit: log.named('nodepool.gateway.audit'),
          defaultLifetime: () => settings.current.defaultLifetime,
          stopping: this.stopping.signal,
        }),
    });
    this.server = server;
    settings.onChange((changed) => {
      // Clients connect again, so that streams of tokens that are no longer valid end.
      streams.close();
      this.tasks.run('apply the settings', () => this.apply(server, changed));
    });
    const { listen, tls } = settings.current;
    const { port } = await server.start(listen);
    log.info('Gateway listens', { address: listen.address, port, tls: tls !== undefined });
    settings.onChange(({ listen: changed }) => {
      if (isDeepStrictEqual(changed, listen)) return;
      log.warn('A changed address takes effect at the next start of the program', { listen: changed });
    });
    this.tasks.run('read the leases', () => leases.start());
    return { port };
  }

  dump(log: Logger): void {
    this.leases.dump(log);
  }

  /** Stops serving. Leases stay. */
  async stop(): Promise<void> {
    this.stopping.abort(new Error('the gateway stops'));
    this.streams.close();
    await this.server?.stop();
    await this.leases.stop();
  }

  private async apply(server: GatewayServer, settings: Settings): Promise<void> {
    server.update(await certificateOf(settings));
  }
}

async function certificateOf({ tls }: Settings): Promise<Certificate | undefined> {
  if (tls === undefined) return undefined;
  const [cert, key] = await Promise.all([readFile(tls.cert), readFile(tls.key)]);
  return { cert, key };
}
