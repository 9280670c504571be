/** Creates the sections of the status page as JSON, and messages with those that changed. */

import { formatProblem } from '@nodepool/config';
import { providersStatus } from './providers.js';
import { imagesStatus } from './images.js';
import { requestsStatus } from './requests.js';
import { shortened, type Observed } from './sources.js';
import type { ComponentStatus, FailureStatus, LauncherStatus, NodesStatus, StatusSections } from './client/status.js';

const MAX_PROBLEMS = 10;
const MAX_UNREADABLE = 5;

/** The functions that create the sections. None iterates over all nodes; node counts follow record changes. */
export const SECTIONS: {
  readonly [S in keyof StatusSections]: (observed: Observed) => StatusSections[S];
} = {
  launcher: launcherStatus,
  nodes: nodesStatus,
  history: ({ counts }) => counts.history(),
  requests: requestsStatus,
  providers: providersStatus,
  images: imagesStatus,
  components: componentsStatus,
  failures: failuresStatus,
};

/** Sections as JSON, by name. */
export type SectionTexts = ReadonlyMap<string, string>;

export function makeSections(observed: Observed): SectionTexts {
  return new Map(Object.entries(SECTIONS).map(([name, make]) => [name, JSON.stringify(make(observed))]));
}

/** Returns the sections of `after` that differ from `before`. */
export function changedSections(before: SectionTexts, after: SectionTexts): SectionTexts {
  return new Map([...after].filter(([name, text]) => before.get(name) !== text));
}

/** Returns a `StatusMessage` as JSON; `now` is in milliseconds since the epoch. */
export function messageOf(sections: SectionTexts, now: number): string {
  const parts = [...sections].map(([name, text]) => `${JSON.stringify(name)}:${text}`);
  return `{"time":${now / 1000},"sections":{${parts.join(',')}}}`;
}

function launcherStatus({ store, isReady, status }: Observed): LauncherStatus {
  const problems = status.problems();
  const unreadable = [...store.nodes.corrupt(), ...store.requests.corrupt(), ...store.images.corrupt()];
  return {
    hostname: status.hostname,
    version: status.version,
    ready: isReady(),
    zookeeper: store.zooKeeper.state,
    complete: store.complete,
    configurationProblems: problems
      .slice(0, MAX_PROBLEMS)
      .map(formatProblem)
      .map((text) => shortened(text)),
    configurationProblemCount: problems.length,
    unreadable: unreadable
      .slice(0, MAX_UNREADABLE)
      .map(({ path, reason }) => ({ path: shortened(path), reason: shortened(reason) })),
    unreadableCount: unreadable.length,
  };
}

function nodesStatus({ store, counts }: Observed): NodesStatus {
  return { total: store.nodes.size, groups: counts.groups() };
}

/** Returns launchers, then builders, each sorted by host. */
function componentsStatus({ store }: Observed): ComponentStatus[] {
  return (['launcher', 'builder'] as const).flatMap((kind) =>
    [...store.components.all(kind)]
      .map(({ component: { hostname, state, version, drivers = {} } }) => ({
        kind,
        hostname: shortened(hostname),
        state,
        version: shortened(version, 80),
        drivers: Object.entries(drivers).map(([name, of]) => ({
          name: shortened(name, 80),
          version: shortened(of, 80),
        })),
      }))
      .sort((a, b) => (a.hostname < b.hostname ? -1 : 1)),
  );
}

function failuresStatus({ status }: Observed): FailureStatus[] {
  return status.failures.list().map(({ level, message, reason, first, last, times, fields }) => ({
    level,
    message: shortened(message),
    reason: reason === undefined ? null : shortened(reason),
    first: first / 1000,
    last: last / 1000,
    times,
    provider: named(fields.provider),
    pool: named(fields.pool),
    label: named(fields.label),
    node: named(fields.node_id),
    request: named(fields.node_request_id),
  }));
}

function named(field: unknown): string | null {
  return typeof field === 'string' ? shortened(field, 80) : null;
}
