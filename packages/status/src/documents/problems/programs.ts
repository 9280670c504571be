/** Problems of the launcher itself: ZooKeeper, its configuration, and records that cannot be read. */

import type { Problem } from '../../client/model.js';
import { shortened } from '../sources.js';
import { counted, MAX_NAME, withRest, type ProblemSources } from './sources.js';

export function zookeeperProblems({ zookeeper, complete }: ProblemSources): Problem[] {
  const isConnected = zookeeper.state === 'connected';
  if (isConnected && complete) return [];
  const common = {
    kind: 'zookeeper',
    key: 'zookeeper',
    subject: null,
    since: zookeeper.since,
    cause: 'ZooKeeper',
  } as const;
  if (isConnected) {
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
      title: 'ZooKeeper is not connected',
      details: [
        ...(zookeeper.lastProblem === undefined ? [] : [`Last error: ${zookeeper.lastProblem}`]),
        'The page shows the state before the connection was lost.',
      ],
      effect: 'no request is served and no node is deleted',
      remedy: 'Check the ZooKeeper servers and the network. `nodepool doctor` tests each server.',
    },
  ];
}

export function configurationProblems({ configuration: { problems, count, since } }: ProblemSources): Problem[] {
  if (count === 0) return [];
  return [
    {
      kind: 'configuration',
      severity: 'critical',
      key: 'configuration',
      title: `The changed configuration was refused for ${counted(count, 'problem')}`,
      subject: null,
      since,
      cause: 'configuration',
      details: withRest(problems, count),
      effect: 'the previous configuration stays in force',
      remedy: 'Correct the files. `nodepool config-validate` prints all problems.',
    },
  ];
}

export function recordProblems({ unreadable: { records, count } }: ProblemSources): Problem[] {
  if (count === 0) return [];
  return [
    {
      kind: 'unreadable-records',
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

/** Returns the suspensions of deletions, which only an operator ends. */
export function suspendedDeletions({ suspensions }: ProblemSources): Problem[] {
  return suspensions.map(({ provider, reason, since, by }) => ({
    kind: 'suspended-deletions',
    severity: 'critical',
    key: `suspended ${provider ?? ''}`,
    title:
      provider === null
        ? 'Deletions of resources without a record are suspended'
        : `Deletions of resources without a record of provider ${shortened(provider, MAX_NAME)} are suspended`,
    subject: provider === null ? null : { kind: 'provider', id: provider },
    since,
    cause: 'ZooKeeper',
    details: [shortened(reason), `${by} has suspended them.`],
    effect: 'leaked resources and interrupted launches remain in the cloud and use its quota',
    remedy:
      'List what has no record (`nodepool orphans list`), adopt what is needed, delete the rest, then run ' +
      '`nodepool orphans confirm`.',
  }));
}
