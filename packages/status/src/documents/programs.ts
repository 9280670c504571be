/** The document of launchers and builders. */

import type { ComponentStatus, ProgramsDocument } from '../client/model.js';
import { shortened, type Observed } from './sources.js';
import { secondsOrNull, SHORT, textOrNull } from './texts.js';

/** Returns launchers, then builders, each sorted by host. */
export function programsDocument(observed: Observed): ProgramsDocument {
  const { store, status } = observed;
  const pools = [...store.components.pools()];
  let own: string | undefined;
  for (const { path, component } of store.components.all('launcher')) {
    if (component.hostname === status.hostname && component.version === status.version) own ??= path;
  }
  const components = (['launcher', 'builder'] as const).flatMap((kind) =>
    [...store.components.all(kind)]
      .map(
        ({ path, component: { hostname, state, version, drivers = {}, configuration, webapp } }): ComponentStatus => ({
          kind,
          hostname: shortened(hostname),
          state,
          version: shortened(version, SHORT),
          configuration: textOrNull(configuration?.fingerprint, SHORT),
          drivers: Object.entries(drivers).map(([name, of]) => ({
            name: shortened(name, SHORT),
            version: shortened(of, SHORT),
          })),
          pools: kind === 'builder' ? [] : pools.filter((pool) => pool.hostname === hostname).map(poolName),
          ...(path === own ? ownFacts(observed) : UNKNOWN),
          webUrl: webapp === undefined ? null : `http://${urlHost(webapp.host)}:${webapp.port}/`,
        }),
      )
      .sort((a, b) => (a.hostname < b.hostname ? -1 : 1)),
  );
  return { components };
}

const UNKNOWN = { self: false, started: null, eventLoopP99: null, heapBytes: null, zookeeper: null } as const;

type OwnFacts = Pick<ComponentStatus, 'self' | 'started' | 'eventLoopP99' | 'heapBytes' | 'zookeeper'>;

function ownFacts({ status, clock }: Observed): OwnFacts {
  const { state, server, since, latency } = status.recorder.zooKeeper.read();
  return {
    self: true,
    started: Math.round(clock.now() / 1000 - process.uptime()),
    eventLoopP99: status.eventLoopDelay().p99,
    heapBytes: process.memoryUsage().heapUsed,
    zookeeper: {
      ...{ state, server: server ?? null, since: since / 1000 },
      latencyP50: secondsOrNull(latency.p50),
      latencyP95: secondsOrNull(latency.p95),
    },
  };
}

function poolName({ provider_name: provider, name }: { provider_name: string; name: string }): string {
  return `${provider}/${name}`;
}

function urlHost(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
