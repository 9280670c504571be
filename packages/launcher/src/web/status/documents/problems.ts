/** Finds the conditions that need an operator: what is wrong, since when, the cause, the effect and a remedy. */

import { formatProblem } from '@nodepool/config';
import { groupBy, oncePerMoment, shortened } from '../sources.js';
import { imagesStatus } from './images.js';
import { labelsStatus } from './labels.js';
import { providersStatus } from './providers.js';
import { reasonsOf } from './requests.js';
import type { ImageStatus, LabelStatus, Problem, ProviderStatus, ReasonGroup } from '../client/model.js';

export interface ProblemSources {
  /** State of the connection to ZooKeeper. */
  readonly zookeeper: string;
  /** True while the launcher sees all records. */
  readonly complete: boolean;
  /** The first problems of a refused configuration, and their total number. */
  readonly configuration: { readonly problems: readonly string[]; readonly count: number };
  /** The first of the records that cannot be read, and their total number. */
  readonly unreadable: { readonly records: readonly string[]; readonly count: number };
  readonly providers: readonly ProviderStatus[];
  readonly labels: readonly LabelStatus[];
  readonly reasons: readonly ReasonGroup[];
  readonly images: readonly ImageStatus[];
  /** Number of registered builders. */
  readonly builders: number;
  /** Current time in unix seconds. */
  readonly now: number;
}

/** Time in seconds for which a full pool is normal. */
const FULL_SECONDS = 600;
/** Time in seconds after which a provider that is starting is a problem. */
const STARTING_SECONDS = 300;
const SEVERITIES = ['critical', 'warning', 'info'] as const;

const MAX_DETAILS = 10;
const MAX_NAME = 80;

export const problemsOf = oncePerMoment((observed): readonly Problem[] => {
  const { store, status, clock } = observed;
  const problems = status.problems();
  const unreadable = [...store.nodes.corrupt(), ...store.requests.corrupt(), ...store.images.corrupt()];
  return findProblems({
    zookeeper: store.zooKeeper.state,
    complete: store.complete,
    configuration: {
      problems: problems.slice(0, MAX_DETAILS).map((problem) => shortened(formatProblem(problem))),
      count: problems.length,
    },
    unreadable: {
      records: unreadable.slice(0, MAX_DETAILS).map(({ path, reason }) => shortened(`${path}: ${reason}`)),
      count: unreadable.length,
    },
    providers: providersStatus(observed),
    labels: labelsStatus(observed),
    reasons: reasonsOf(observed).groups(),
    images: imagesStatus(observed),
    builders: [...store.components.all('builder')].length,
    now: clock.now() / 1000,
  });
});

/** Returns the problems, the most severe and then the oldest first. */
export function findProblems(sources: ProblemSources): Problem[] {
  const problems = [
    ...zookeeperProblems(sources),
    ...configurationProblems(sources),
    ...sources.providers.flatMap((provider) => providerProblems(provider, sources)),
    ...labelProblems(sources),
    ...imageProblems(sources),
    ...fullPools(sources),
    ...recordProblems(sources),
  ];
  const rank = ({ severity }: Problem): number => SEVERITIES.indexOf(severity);
  return problems.sort((a, b) => rank(a) - rank(b) || (a.since ?? Infinity) - (b.since ?? Infinity));
}

function zookeeperProblems({ zookeeper, complete }: ProblemSources): Problem[] {
  if (zookeeper === 'connected' && complete) return [];
  const common = { key: 'zookeeper', subject: null, since: null, cause: 'ZooKeeper' } as const;
  if (zookeeper === 'connected') {
    return [
      {
        ...common,
        severity: 'info',
        title: 'The launcher is still reading the records',
        details: ['The numbers are incomplete until all records are read from ZooKeeper.'],
        effect: null,
        remedy: null,
      },
    ];
  }
  return [
    {
      ...common,
      severity: 'critical',
      title: `ZooKeeper is not connected (${zookeeper})`,
      details: ['The page shows the state before the connection was lost.'],
      effect: 'no request is served and no node is deleted',
      remedy: 'Check the ZooKeeper servers and the network. The log of the launcher names the servers that it tries.',
    },
  ];
}

function configurationProblems({ configuration: { problems, count } }: ProblemSources): Problem[] {
  if (count === 0) return [];
  return [
    {
      severity: 'critical',
      key: 'configuration',
      title: `The changed configuration was refused for ${counted(count, 'problem')}`,
      subject: null,
      since: null,
      cause: 'configuration',
      details: withRest(problems, count),
      effect: 'the previous configuration stays in force',
      remedy: 'Correct the files. `nodepool config-validate` prints all problems.',
    },
  ];
}

function withRest(texts: readonly string[], count: number): string[] {
  return count > texts.length ? [...texts, `and ${count - texts.length} more`] : [...texts];
}

function providerProblems(provider: ProviderStatus, sources: ProblemSources): Problem[] {
  const { state, reason, since, lastError } = provider;
  const name = shortened(provider.name, MAX_NAME);
  const waiting = waitingFor(sources.reasons, (pool) => pool.startsWith(`${name}/`));
  const common = {
    key: `provider ${name}`,
    subject: { kind: 'provider', id: provider.name },
    since,
    details: [reason, lastError === null || lastError.text === reason ? null : `Last error: ${lastError.text}`].filter(
      (text) => text !== null,
    ),
    effect: effectOf(waiting),
  } as const;
  const severity = waiting > 0 ? 'critical' : 'warning';
  switch (state) {
    case 'serving':
      return [...suspendedOffers(provider), ...unusableMachines(provider)];
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
        {
          ...common,
          severity: 'warning',
          title: `Provider ${name} is degraded`,
          cause: 'cloud',
          remedy: 'See the failed launches on the page of the provider.',
        },
      ];
    case 'unreachable':
      return [
        {
          ...common,
          severity: 'critical',
          title: `Provider ${name} is unreachable`,
          cause: 'cloud',
          remedy: 'Check the status page of the cloud and the network. Launches resume when the cloud answers.',
        },
      ];
    case 'misconfigured':
      return [
        {
          ...common,
          severity,
          title: `Provider ${name} is out of service`,
          cause: provider.driverVersion === null ? 'driver' : 'configuration',
          remedy: 'Correct the configuration of the provider, or install its driver.',
        },
      ];
    case 'gone':
      return [
        {
          ...common,
          severity: 'warning',
          title: `Provider ${name} has nodes, but no launcher serves it`,
          cause: 'configuration',
          remedy: `Configure it again, or remove its records with \`nodepool erase ${name}\`.`,
        },
      ];
  }
}

function suspendedOffers({ name: provider, pools }: ProviderStatus): Problem[] {
  return pools.flatMap(({ name, offers }) => {
    const open = offers.filter(({ state }) => state === 'open');
    if (open.length === 0) return [];
    const times = open.flatMap(({ since }) => (since === null ? [] : [since]));
    return [
      {
        severity: 'warning',
        key: `offers ${provider}/${name}`,
        title: `Pool ${provider}/${name} has ${counted(open.length, 'suspended offer')}`,
        subject: { kind: 'pool', id: `${provider}/${name}` },
        since: times.length === 0 ? null : Math.min(...times),
        cause: 'cloud',
        details: open.slice(0, 3).map((offer) => `${offer.name}: ${offer.reason ?? 'launches failed'}`),
        effect: `${open.length} of ${counted(offers.length, 'offer')} cannot be ordered`,
        remedy: 'Launches use the other offers. A trial launch tests each suspended offer again.',
      } as const,
    ];
  });
}

function unusableMachines({ name: provider, pools }: ProviderStatus): Problem[] {
  return pools
    .filter(({ outOfService }) => outOfService.length > 0)
    .map(({ name, outOfService }) => ({
      severity: 'warning',
      key: `machines ${provider}/${name}`,
      title: `Pool ${provider}/${name} has ${counted(outOfService.length, 'machine')} out of service`,
      subject: { kind: 'pool', id: `${provider}/${name}` },
      since: Math.min(...outOfService.map(({ since }) => since)),
      cause: 'cloud',
      details: outOfService.slice(0, 3).map(({ machine, reason }) => `${machine}: ${reason}`),
      effect: `${counted(
        outOfService.reduce((sum, { slots }) => sum + slots, 0),
        'node',
      )} fewer`,
      remedy: 'Repair the machines. The launcher uses them again when their logins answer.',
    }));
}

function labelProblems({ labels }: ProblemSources): Problem[] {
  return labels
    .filter(({ waiting, reason }) => waiting > 0 && reason?.phase === 'none')
    .map(({ name, waiting, oldest, reason, pools }) => ({
      severity: 'critical',
      key: `label ${name}`,
      title: `No pool ${pools.length === 0 ? 'has' : 'can serve'} the label ${shortened(name, MAX_NAME)}`,
      subject: { kind: 'label', id: name },
      since: reason?.since ?? oldest,
      cause: 'configuration',
      details: pools.length === 0 || reason === null ? [] : [reason.text],
      effect: effectOf(waiting),
      remedy: 'Add the label to a pool, or correct the jobs that ask for it.',
    }));
}

function imageProblems({ images, reasons, builders, now }: ProblemSources): Problem[] {
  const problems = images.flatMap((image) => imageProblem(image, reasons, now) ?? []);
  if (images.length > 0 && builders === 0) {
    problems.push({
      severity: 'warning',
      key: 'builders',
      title: 'No builder is registered',
      subject: null,
      since: null,
      cause: 'image',
      details: [],
      effect: 'images are neither built nor uploaded',
      remedy: 'Start nodepool-builder.',
    });
  }
  return problems;
}

function imageProblem(image: ImageStatus, reasons: readonly ReasonGroup[], now: number): Problem | undefined {
  const { name, labels, uploads, builds, lastFailure } = image;
  const common = {
    key: `image ${name}`,
    subject: { kind: 'image', id: name },
    cause: 'image',
    details: lastFailure === null ? [] : [lastFailure.text],
  } as const;
  const isBuilding = builds[0]?.state === 'building';
  const log =
    lastFailure === null || lastFailure.log === null
      ? 'Read the log of the builder.'
      : `Read ${lastFailure.log} on ${lastFailure.builder ?? 'the builder'}.`;
  const remedy = isBuilding
    ? `${log} A new build is running.`
    : `${log} \`nodepool image-build ${name}\` starts a build.`;
  if (labels.length > 0 && !uploads.some(({ state, failure }) => state === 'ready' && failure === null)) {
    const waiting = waitingForLabels(reasons, labels);
    return {
      ...common,
      severity: waiting > 0 ? 'critical' : 'warning',
      title: `Image ${name} is missing`,
      since: lastFailure?.time ?? null,
      effect: effectOf(waiting) ?? `${counted(labels.length, 'label')} cannot be served`,
      remedy: uploads.some(({ state }) => state === 'uploading') ? 'An upload is in progress.' : remedy,
    };
  }
  const newest = builds.find(({ state }) => state === 'ready')?.since;
  // A newer successful build supersedes the failure.
  if (lastFailure !== null && !(newest !== undefined && newest > lastFailure.time)) {
    return {
      ...common,
      severity: 'warning',
      title: `The last build of image ${name} failed`,
      since: lastFailure.time,
      effect: newest === undefined ? null : `nodes use a build that is ${ageOf(now - newest)} old`,
      remedy,
    };
  }
  return failedUpload(image);
}

function ageOf(seconds: number): string {
  return seconds < 2 * 86_400
    ? counted(Math.round(seconds / 3600), 'hour')
    : counted(Math.round(seconds / 86_400), 'day');
}

/** An upload that failed after the newest usable one of its provider. */
function failedUpload({ name, uploads }: ImageStatus): Problem | undefined {
  const failed = uploads.find(
    ({ provider, state, since }) =>
      state === 'failed' &&
      !uploads.some((other) => other.provider === provider && other.state === 'ready' && other.since > since),
  );
  if (failed === undefined) return undefined;
  return {
    severity: 'warning',
    key: `upload ${name} ${failed.provider}`,
    title: `The upload of image ${name} to ${failed.provider} failed`,
    subject: { kind: 'image', id: name },
    since: failed.since,
    cause: 'image',
    details: failed.failure === null ? [] : [failed.failure],
    effect: 'nodes of this provider use an older build',
    remedy: 'The builder tries again. See its log for the answer of the cloud.',
  };
}

/** Returns the pools that requests have been waiting for longer than is normal. */
function fullPools({ reasons, providers, now }: ProblemSources): Problem[] {
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
        severity: 'warning',
        key,
        title: isLimit ? `Pool ${name} is at its limit` : `The cloud of pool ${name} is out of capacity`,
        subject: pool === null ? null : { kind: 'pool', id: pool },
        since,
        cause: isLimit ? 'limit' : 'cloud',
        details: [text],
        effect: effectOf(others.reduce((sum, { count }) => sum + count, largest.count)),
        remedy: isLimit
          ? 'Raise the limit if the cloud allows more, or wait until nodes are returned.'
          : 'Wait until the cloud has capacity, or configure another zone or size.',
      },
    ];
  });
}

function recordProblems({ unreadable: { records, count } }: ProblemSources): Problem[] {
  if (count === 0) return [];
  return [
    {
      severity: 'warning',
      key: 'unreadable',
      title: `${counted(count, 'record')} in ZooKeeper cannot be read`,
      subject: null,
      since: null,
      cause: 'ZooKeeper',
      details: withRest(records, count),
      effect: null,
      remedy: 'Find the program that wrote them. The launcher ignores them.',
    },
  ];
}

function waitingFor(reasons: readonly ReasonGroup[], isFor: (pool: string) => boolean): number {
  return reasons.reduce((sum, { pool, count }) => sum + (pool !== null && isFor(pool) ? count : 0), 0);
}

function waitingForLabels(reasons: readonly ReasonGroup[], labels: readonly string[]): number {
  return reasons
    .filter(({ phase, labels: wanted }) => phase === 'image' && wanted.some((label) => labels.includes(label)))
    .reduce((sum, { count }) => sum + count, 0);
}

function effectOf(waiting: number): string | null {
  if (waiting === 0) return null;
  return waiting === 1 ? '1 request waits for it' : `${waiting} requests wait for it`;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
