/** Conditions that need attention, the worst first. */

import { formatProblem } from '@nodepool/config';
import type { Problem, ProviderStatus } from '../client/model.js';
import { shortened, type Observed } from '../sources.js';
import { providersStatus } from './providers.js';

const MAX_DETAILS = 10;
const SEVERITIES = ['critical', 'warning', 'info'] as const;

export function problemsOf(observed: Observed): Problem[] {
  const found = [
    ...zooKeeperProblems(observed),
    ...configurationProblems(observed),
    ...providersStatus(observed).flatMap(providerProblems),
    ...imageProblems(observed),
  ];
  return found.sort((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity));
}

function zooKeeperProblems({ store }: Observed): Problem[] {
  const problems: Problem[] = [];
  if (store.zooKeeper.state !== 'connected') {
    problems.push({
      ...{ severity: 'critical', key: 'zookeeper', title: 'ZooKeeper is not connected', subject: null, since: null },
      cause: 'ZooKeeper',
      details: [`The session is ${store.zooKeeper.state}.`],
      effect: 'No request is served, and this page shows the last known state.',
      remedy: 'Check the ZooKeeper servers and the network; the launcher reconnects by itself.',
    });
  }
  const unreadable = [...store.nodes.corrupt(), ...store.requests.corrupt(), ...store.images.corrupt()];
  if (unreadable.length > 0) {
    problems.push({
      severity: 'warning',
      key: 'unreadable-records',
      title: unreadable.length === 1 ? '1 record cannot be read' : `${unreadable.length} records cannot be read`,
      ...{ subject: null, since: null, cause: 'ZooKeeper' },
      details: unreadable.slice(0, MAX_DETAILS).map(({ path, reason }) => shortened(`${path}: ${reason}`)),
      effect: 'The launcher ignores them.',
      remedy: 'Find the program that wrote them, then delete or repair the records.',
    });
  }
  return problems;
}

function configurationProblems({ status }: Observed): Problem[] {
  const problems = status.problems();
  if (problems.length === 0) return [];
  return [
    {
      severity: 'critical',
      key: 'configuration',
      title: 'The changed configuration is invalid and not in force',
      ...{ subject: null, since: null, cause: 'configuration' },
      details: problems
        .slice(0, MAX_DETAILS)
        .map(formatProblem)
        .map((text) => shortened(text)),
      effect: 'The previous configuration stays in force; a restart would fail.',
      remedy: 'Correct the file; the launcher reads it again by itself.',
    },
  ];
}

function providerProblems(provider: ProviderStatus): Problem[] {
  const { name, state, reason, since, lastError, launches } = provider;
  const known = PROVIDER_PROBLEMS[state];
  if (known === undefined) return [];
  const failing = launches === null || launches.failed === 0 ? [] : [rateText(launches)];
  const last = lastError === null ? [] : [`Last error: ${lastError.text}`];
  return [
    {
      ...known,
      key: `provider ${name}`,
      title: `Provider ${name} ${known.title}`,
      subject: { kind: 'provider', id: name },
      since,
      details: [...(reason === null ? [] : [reason]), ...failing, ...last],
    },
  ];
}

function rateText({ windowSeconds, started, failed }: NonNullable<ProviderStatus['launches']>): string {
  return `${failed} of ${started} launches failed in the last ${Math.max(1, Math.round(windowSeconds / 60))} minutes.`;
}

const PROVIDER_PROBLEMS: Readonly<
  Partial<Record<ProviderStatus['state'], Pick<Problem, 'severity' | 'title' | 'cause' | 'effect' | 'remedy'>>>
> = {
  degraded: {
    severity: 'warning',
    title: 'is degraded',
    cause: 'cloud',
    effect: 'Requests are left to other pools where possible, and wait or fail otherwise.',
    remedy: 'Check the last error with the operators of the cloud; the launcher continues by itself.',
  },
  unreachable: {
    severity: 'critical',
    title: 'cannot be reached',
    cause: 'cloud',
    effect: 'It launches and deletes nothing.',
    remedy: 'Check the network and the endpoint of the cloud; the launcher continues by itself.',
  },
  misconfigured: {
    severity: 'critical',
    title: 'is misconfigured',
    cause: 'configuration',
    effect: 'It serves no request.',
    remedy: 'Correct its configuration, credentials or driver as the reason says.',
  },
  gone: {
    severity: 'warning',
    title: 'has nodes, but no launcher serves it',
    cause: 'configuration',
    effect: 'Its nodes are not deleted.',
    remedy: 'Configure it in a launcher, or remove its records with `nodepool erase`.',
  },
};

function imageProblems({ store, status }: Observed): Problem[] {
  const images = new Set(
    [...status.config().diskImages.values()].filter(({ abstract }) => !abstract).map((each) => each.name),
  );
  return [...images].flatMap((image): Problem[] => {
    const failure = store.images.lastBuildFailure(image);
    const ready = store.images.builds(image).findLast(({ state }) => state === 'ready');
    if (failure === undefined || (ready !== undefined && ready.state_time > failure.time)) return [];
    return [
      {
        severity: ready === undefined ? 'critical' : 'warning',
        key: `image ${image}`,
        title: `The last build of image ${image} failed`,
        subject: { kind: 'image', id: image },
        since: failure.time,
        cause: 'image',
        details: [shortened(failure.message)],
        effect: ready === undefined ? 'Labels with this image cannot be served.' : 'Nodes use an older build.',
        remedy:
          failure.log === null
            ? 'Read the log of the builder.'
            : `Read ${failure.log} on ${failure.builder ?? 'the builder'}.`,
      },
    ];
  });
}
