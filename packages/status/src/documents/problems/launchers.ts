/** Problems of other launchers: providers that they cannot serve, trouble that they see, and their configurations. */

import { groupBy, shortened } from '../sources.js';
import type { Problem } from '../../client/model.js';
import { counted, MAX_NAME, withRest, type LauncherFacts, type ProblemSources } from './sources.js';

/** Time in seconds for which launchers may have different configurations, because files reach hosts one by one. */
const ROLLOUT_SECONDS = 120;
const MAX_DETAILS = 10;

export function launcherProblems(sources: ProblemSources): Problem[] {
  return [...unservedProviders(sources), ...foreignTroubles(sources), ...differentConfigurations(sources)];
}

function unservedProviders({ launchers }: ProblemSources): Problem[] {
  return launchers.flatMap(({ hostname, isOwn, unserved }) => {
    const names = Object.entries(unserved);
    // The problems of this launcher's providers name its drivers.
    if (isOwn || names.length === 0) return [];
    return [
      {
        kind: 'launcher-without-driver',
        severity: 'warning',
        key: `unserved ${hostname}`,
        title: `Launcher ${shortened(hostname, MAX_NAME)} cannot serve ${counted(names.length, 'provider')}`,
        subject: { kind: 'program', id: hostname },
        since: null,
        cause: 'driver',
        details: withRest(
          names.slice(0, MAX_DETAILS).map(([name, reason]) => shortened(`${name}: ${reason}`)),
          names.length,
        ),
        effect: 'only other launchers can serve them',
        remedy: 'Install the drivers on this host, and restart its launcher.',
        launcher: hostname,
      },
    ];
  });
}

/** Returns the troubles that other launchers see, except for those that this launcher sees itself. */
function foreignTroubles({ troubles, providers }: ProblemSources): Problem[] {
  const own = new Map(providers.map(({ name, state }) => [name, state]));
  const byPlace = groupBy(troubles, ({ provider, hostname }) => JSON.stringify([provider, hostname]));
  return [...byPlace.values()].flatMap(([first]) => {
    if (first === undefined || own.get(first.provider) === first.state) return [];
    const { provider, hostname, state, reason, since } = first;
    const isServed = own.get(provider) === 'serving';
    return [
      {
        kind: 'provider',
        severity: state === 'unreachable' && !isServed ? 'critical' : 'warning',
        key: `provider ${provider} on ${hostname}`,
        title: `Launcher ${shortened(hostname, MAX_NAME)} sees that provider ${shortened(provider, MAX_NAME)} is ${state}`,
        subject: { kind: 'provider', id: provider },
        since,
        cause: 'cloud',
        details: [shortened(reason)],
        effect: isServed ? 'other launchers serve it' : null,
        remedy: 'See the status page of that launcher.',
        launcher: hostname,
      },
    ];
  });
}

function differentConfigurations({ launchers, now }: ProblemSources): Problem[] {
  // All launchers describe the same difference in the same words.
  const known = launchers
    .flatMap(({ hostname, configuration }) => (configuration === undefined ? [] : [{ hostname, ...configuration }]))
    .sort((a, b) => (a.hostname < b.hostname ? -1 : 1));
  const newest = Math.max(...known.map(({ since }) => since));
  if (now - newest < ROLLOUT_SECONDS) return [];
  const names = new Set(known.flatMap(({ providers }) => Object.keys(providers)));
  const details = [...names]
    .sort()
    .flatMap((name) => difference(`provider ${name}`, known, ({ providers }) => providers[name]));
  // Launchers of different providers may have different files.
  const sameProviders = groupBy(known, ({ providers }) => JSON.stringify(Object.entries(providers).sort()));
  for (const group of sameProviders.values()) {
    details.push(...difference('labels, disk images or limits', group, ({ fingerprint }) => fingerprint));
  }
  if (details.length === 0) return [];
  return [
    {
      kind: 'different-configurations',
      severity: 'warning',
      key: 'different configurations',
      title: 'Launchers have different configurations',
      subject: null,
      since: newest,
      cause: 'configuration',
      details: withRest(details.slice(0, MAX_DETAILS), details.length),
      effect: 'limits and labels depend on the launcher that serves a request',
      remedy: 'Install the same configuration on these launchers. The page of launchers shows the fingerprints.',
    },
  ];
}

type Known = { readonly hostname: string } & NonNullable<LauncherFacts['configuration']>;

/** Returns the fingerprints with their launchers if there are several. */
function difference(what: string, known: readonly Known[], printOf: (known: Known) => string | undefined): string[] {
  const having = known.filter((each) => printOf(each) !== undefined);
  const byPrint = groupBy(having, (each) => printOf(each) ?? '');
  if (byPrint.size < 2) return [];
  const places = [...byPrint].map(
    ([print, hosts]) => `${print} on ${hosts.map(({ hostname }) => hostname).join(', ')}`,
  );
  return [shortened(`${what}: ${places.join('; ')}`)];
}
