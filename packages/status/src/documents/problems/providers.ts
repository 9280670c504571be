/** Problems of providers, their launches, offers and machines, and the limits of pools. */

import { remedyFor, type DriverErrorCode } from '@nodepool/core';
import { POOL_RETURN_MS } from '@nodepool/store';
import type { MachineStatus, Problem, ProviderStatus } from '../../client/model.js';
import { groupBy, shortened } from '../sources.js';
import { counted, effectOf, MAX_NAME, waitingFor, withRest, type ProblemSources } from './sources.js';

/** Number of hosts that a problem names. */
const MAX_HOSTS = 3;
/** Time in seconds for which a full pool is normal. */
const FULL_SECONDS = 600;
/** Number of failed launches from which on failures are a problem. */
const MANY_FAILURES = 3;
/** Time in seconds after the last failed launch for which the failures are a problem. */
const RECENT_SECONDS = 300;
/** Time in seconds without another failure after which a single success ends the failures. */
const QUIET_SECONDS = 30;
/** Time in seconds after which a provider that is starting is a problem. */
const STARTING_SECONDS = 300;

export function providerProblems(provider: ProviderStatus, sources: ProblemSources): Problem[] {
  const { state, reason, since } = provider;
  const name = shortened(provider.name, MAX_NAME);
  const waiting = waitingFor(sources.reasons, (pool) => pool.startsWith(`${provider.name}/`));
  const hanging = sources.accepted.get(provider.name) ?? 0;
  const common = {
    kind: 'provider',
    key: `provider ${name}`,
    subject: { kind: 'provider', id: provider.name },
    since,
    details: [reason, errorBehind(provider)].filter((text) => text !== null),
    effect: effectOf(waiting, hanging),
  } as const;
  const severity = waiting + hanging > 0 ? 'critical' : 'warning';
  switch (state) {
    case 'serving':
      return [
        ...missingInstances(provider),
        ...failingLaunches(provider, sources),
        ...suspendedOffers(provider),
        ...unusableMachines(provider),
      ];
    case 'elsewhere':
      return [];
    case 'starting':
      if (since === null || sources.now - since < STARTING_SECONDS) return [];
      return [
        {
          ...common,
          severity: 'warning',
          title: `Provider ${name} is still starting`,
          cause: 'cloud',
          remedy: 'See the log of the launcher for the calls that it waits for.',
        },
      ];
    case 'degraded':
      return [
        ...missingInstances(provider),
        {
          ...common,
          severity: 'warning',
          title: `Provider ${name} is degraded`,
          cause: CAUSES[provider.cause ?? ''] ?? 'cloud',
          remedy: remedyOf(provider),
        },
      ];
    case 'unavailable':
    case 'unreachable':
      return [
        {
          ...common,
          severity: 'critical',
          title: `Provider ${name} is ${state}`,
          cause: 'cloud',
          remedy: remedyOf(provider),
        },
      ];
    case 'misconfigured':
      return [
        {
          ...common,
          severity,
          title: `Provider ${name} is out of service`,
          cause: CAUSES[provider.cause ?? ''] ?? 'configuration',
          remedy: remedyOf(provider),
        },
      ];
    case 'gone':
      return unserved(provider, sources);
  }
}

function unserved({ name: provider, groups }: ProviderStatus, { lastServed, now }: ProblemSources): Problem[] {
  const { hosts, isRunning, left } = lastServed.get(provider) ?? { hosts: [], isRunning: false, left: null };
  // A launcher that restarts returns within this time.
  if (left !== null && now - left < POOL_RETURN_MS / 1000) return [];
  const name = shortened(provider, MAX_NAME);
  const total = Object.values(groups).reduce((sum, count) => sum + count, 0);
  const used = groups['in use'];
  const places = hosts.slice(0, MAX_HOSTS).join(', ');
  const start = hosts.length === 0 ? 'Start a launcher that serves it' : `Start the launcher on ${places}`;
  return [
    {
      kind: 'provider-unserved',
      severity: 'warning',
      key: `provider ${name}`,
      title: `Provider ${name} has ${counted(total, 'node')}, but no launcher serves it`,
      subject: { kind: 'provider', id: provider },
      since: left,
      cause: 'configuration',
      details: hosts.length === 0 ? [] : withRest([`last served by ${places}`], hosts.length - MAX_HOSTS + 1),
      effect: [
        ...(used === 0 ? [] : [`${used} in use ${used === 1 ? 'is' : 'are'} not deleted after use`]),
        ...(used === total ? [] : [`${total - used} ${total - used === 1 ? 'is' : 'are'} neither used nor deleted`]),
      ].join(', '),
      remedy:
        `${isRunning ? 'Configure the provider again' : `${start}, or configure the provider again`}. Only if its cloud no ` +
        `longer exists, \`nodepool erase ${name}\` removes the records; ` +
        'instances that exist then run on.',
    },
  ];
}

/** The part at fault by the kind of a provider's trouble; the cloud for other kinds. */
const CAUSES: Readonly<Record<string, Problem['cause']>> = {
  driver: 'driver',
  auth: 'configuration',
  configuration: 'configuration',
  quota: 'limit',
};

/** Kinds of errors whose remedies are those of a trouble's kind. */
const CODES: Readonly<Record<string, DriverErrorCode>> = {
  unreachable: 'transient',
  listing: 'transient',
  throttled: 'throttled',
  auth: 'auth',
  certificate: 'certificate',
  quota: 'quota',
  capacity: 'capacity',
  refused: 'refused',
  configuration: 'configuration',
};

function remedyOf({ cause }: ProviderStatus): string {
  if (cause === 'driver') return 'Install the driver of the provider, or correct the configuration.';
  const remedy = remedyFor(CODES[cause ?? ''] ?? 'unexpected');
  return `${remedy.charAt(0).toUpperCase()}${remedy.slice(1)}.`;
}

/** Returns the last error of a launch if it belongs to the trouble and its reason does not contain it. */
function errorBehind({ lastError, reason, since }: ProviderStatus): string | null {
  if (lastError === null || lastError.time < (since ?? 0) - RECENT_SECONDS) return null;
  return reason?.includes(lastError.text) === true ? null : `Last error: ${lastError.text}`;
}

function missingInstances({ name, missingInstances: found }: ProviderStatus): Problem[] {
  if (found === null) return [];
  const { missing, total, since } = found;
  return [
    {
      kind: 'missing-instances',
      severity: 'critical',
      key: `missing instances ${name}`,
      title: `The cloud of provider ${shortened(name, MAX_NAME)} does not list the instances of ${counted(missing, 'node')}`,
      subject: { kind: 'provider', id: name },
      since,
      cause: 'cloud',
      details: [`${missing} of ${counted(total, 'node')} with an instance`],
      effect: 'ready nodes among them are neither handed out nor replaced',
      remedy:
        'Check the project, the region and the credentials of the provider, and whether ZooKeeper has its newest ' +
        'state. Delete the nodes with `nodepool delete ID` if their instances no longer exist.',
    },
  ];
}

/** Returns the failures of most launches, until a while after the last one. */
function failingLaunches({ name }: ProviderStatus, { launches, now }: ProblemSources): Problem[] {
  const recent = launches.get(name);
  if (recent === undefined) return [];
  const { ended, failed, text, last, readySince, minutes } = recent;
  const age = now - last / 1000;
  if (failed < MANY_FAILURES || age > RECENT_SECONDS) return [];
  const isOver = readySince >= MANY_FAILURES || (readySince > 0 && age >= QUIET_SECONDS);
  // Successes after the end do not change what was wrong before it.
  if (failed * 2 <= ended - (isOver ? readySince : 0)) return [];
  const provider = shortened(name, MAX_NAME);
  return [
    {
      kind: 'failing-launches',
      severity: isOver ? 'info' : 'warning',
      key: `launches ${name}`,
      title: isOver
        ? `Most launches of provider ${provider} failed; it is over`
        : `Most launches of provider ${provider} fail`,
      subject: { kind: 'provider', id: name },
      since: last / 1000,
      cause: 'cloud',
      details: [`${failed} of ${counted(ended, 'launch', 'launches')} failed in ${minutes} minutes`, shortened(text)],
      effect: isOver
        ? `none: ${counted(readySince, 'launch', 'launches')} succeeded since then`
        : 'requests wait longer, or fail after several attempts',
      remedy: isOver
        ? null
        : 'Repair what the messages name; the page of the provider shows the last one of each kind of failure.',
    },
  ];
}

function suspendedOffers({ name: provider, pools }: ProviderStatus): Problem[] {
  return pools.flatMap(({ name, offers }) => {
    const open = offers.filter(({ state }) => state === 'open');
    if (open.length === 0) return [];
    const times = open.flatMap(({ since }) => (since === null ? [] : [since]));
    return [
      {
        kind: 'offers',
        severity: 'warning',
        key: `offers ${provider}/${name}`,
        title: `Pool ${provider}/${name} has ${counted(open.length, 'suspended offer')}`,
        subject: { kind: 'pool', id: `${provider}/${name}` },
        since: times.length === 0 ? null : Math.min(...times),
        cause: 'cloud',
        details: open.slice(0, 3).map((offer) => `${offer.name}: ${offer.reason ?? 'launches failed'}`),
        effect: `${open.length} of ${counted(offers.length, 'offer')} cannot be used`,
        remedy: 'Launches use the other offers. A trial launch tests each suspended offer again.',
      } as const,
    ];
  });
}

/** Returns the problems of machines that no launcher of their pool can use, and of those that some cannot use. */
function unusableMachines({ name: provider, pools }: ProviderStatus): Problem[] {
  return pools.flatMap(({ name, outOfService }) => {
    const pool = `${provider}/${name}`;
    const common = { kind: 'machines', severity: 'warning', subject: { kind: 'pool', id: pool } } as const;
    const [down, partly] = [
      outOfService.filter(({ onlyFor }) => onlyFor.length === 0),
      outOfService.filter(({ onlyFor }) => onlyFor.length > 0),
    ];
    const nodes = counted(
      down.reduce((sum, { slots }) => sum + slots, 0),
      'node',
    );
    const launchers = [...new Set(partly.flatMap(({ onlyFor }) => onlyFor))].sort().join(', ');
    const problems: Problem[] = [];
    if (down.length > 0)
      problems.push({
        ...common,
        key: `machines ${pool}`,
        title: `Pool ${pool} has ${counted(down.length, 'machine')} out of service`,
        ...machineFacts(down),
        effect: `${nodes} fewer`,
        remedy: 'Repair the machines. The launcher uses them again when their logins answer.',
      });
    if (partly.length > 0)
      problems.push({
        ...common,
        key: `machines ${pool} for some launchers`,
        title: `Pool ${pool} has ${counted(partly.length, 'machine')} that launcher ${launchers} cannot use`,
        ...machineFacts(partly),
        effect: 'only other launchers use them',
        remedy: `Check the network between ${launchers} and the machines, and the host keys.`,
      });
    return problems;
  });
}

function machineFacts(machines: readonly MachineStatus[]): Pick<Problem, 'since' | 'cause' | 'details'> {
  return {
    since: Math.min(...machines.map(({ since }) => since)),
    cause: 'cloud',
    details: machines.slice(0, 3).map(({ machine, reason }) => `${machine}: ${reason}`),
  };
}

/** Returns the pools that requests have been waiting for longer than is normal. */
export function fullPools({ reasons, providers, now }: ProblemSources): Problem[] {
  const byPool = groupBy(
    reasons.filter(({ phase, pool }) => {
      const state = providers.find(({ name }) => pool?.startsWith(`${name}/`) === true)?.state;
      return phase === 'limit' || (phase === 'capacity' && (state === 'serving' || state === 'degraded'));
    }),
    ({ phase, pool }) => `${phase} ${pool ?? ''}`,
  );
  return [...byPool].flatMap(([key, [largest, ...others]]): Problem[] => {
    if (largest === undefined) return [];
    const { phase, pool, text } = largest;
    const since = Math.min(largest.oldest, ...others.map(({ oldest }) => oldest));
    if (now - since <= FULL_SECONDS) return [];
    const isLimit = phase === 'limit';
    const name = pool ?? '';
    return [
      {
        kind: isLimit ? 'pool-limit' : 'pool-capacity',
        severity: 'warning',
        key,
        title: isLimit ? `Pool ${name} is at its limit` : `The cloud of pool ${name} is out of capacity`,
        subject: pool === null ? null : { kind: 'pool', id: pool },
        since,
        cause: isLimit ? 'limit' : 'cloud',
        details: [text],
        effect: effectOf(others.reduce((sum, { count }) => sum + count, largest.count)),
        remedy: isLimit
          ? 'Raise the limit that the reason names if the cloud allows more, or wait until nodes are returned.'
          : 'Wait until the cloud has capacity, or configure another zone or size.',
      },
    ];
  });
}
