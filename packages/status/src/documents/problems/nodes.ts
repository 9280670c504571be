/** Problems of nodes: deletions that do not end, and ready nodes that no pool hands out. */

import { providerOfBackingOwner } from '@nodepool/core';
import { groupBy, shortened } from '../sources.js';
import type { Problem } from '../../client/model.js';
import { counted, MAX_NAME, withRest, type ProblemSources } from './sources.js';

/** Number of nodes that a problem names. */
const MAX_NODES = 5;

/** Returns the deletions that have lasted for too long, by provider. */
export function stuckDeletions({ stuck }: ProblemSources): Problem[] {
  const byProvider = groupBy(stuck, ({ entry: { node } }) => node.provider ?? '');
  return [...byProvider].map(([provider, found]) => {
    const oldest = found.toSorted((a, b) => a.entry.node.state_time - b.entry.node.state_time);
    const details = oldest.slice(0, MAX_NODES).map(({ entry: { id }, answer }) => shortened(`${id}: ${answer}`));
    return {
      kind: 'stuck-deletions',
      severity: 'warning',
      key: `stuck deletions ${provider}`,
      title: `Provider ${shortened(provider, MAX_NAME)} does not delete ${counted(found.length, 'node')}`,
      subject: { kind: 'provider', id: provider },
      since: oldest[0]?.entry.node.state_time ?? null,
      cause: 'cloud',
      details: withRest(details, found.length),
      effect: 'they count against the limits unless their last answer says that they no longer do',
      remedy:
        'See `nodepool describe node ID`. Remove what the last answer names, or delete the instance, with the tools of the cloud.',
    };
  });
}

/** Returns the providers with ready nodes that no request can get, e.g. because their pool was renamed. */
export function strandedNodesProblems({ stranded }: ProblemSources): Problem[] {
  const byProvider = groupBy(stranded, ({ node }) => node.provider ?? '');
  return [...byProvider].map(([provider, nodes]) => {
    const places = groupBy(nodes, ({ node: { pool, type } }) => `pool ${pool ?? ''}, label ${type.join(', ')}`);
    const details = [...places].map(([place, entries]) => {
      const ids = entries.slice(0, MAX_NODES).map(({ id }) => id);
      const more = entries.length - ids.length;
      return shortened(`${place}: ${ids.join(', ')}${more === 0 ? '' : ` and ${more} more`}`);
    });
    return {
      kind: 'stranded-nodes',
      severity: 'warning',
      key: `stranded ${provider}`,
      title: `Provider ${shortened(provider, MAX_NAME)} has ${counted(nodes.length, 'ready node')} that no pool hands out`,
      subject: { kind: 'provider', id: provider },
      since: null,
      cause: 'configuration',
      details: withRest(details.slice(0, 3), details.length),
      effect: 'no request gets them',
      remedy: 'Start the launcher of their pool, configure their pool and label again, or `nodepool delete ID`.',
    };
  });
}

/** Returns the backing nodes whose data is damaged, by owner: they get no further nodes. */
export function damagedBackingProblems({ damagedBacking }: ProblemSources): Problem[] {
  const byOwner = groupBy(damagedBacking, ({ owner }) => owner);
  return [...byOwner].map(([owner, nodes]) => {
    const provider = providerOfBackingOwner(owner) ?? owner;
    const details = nodes.slice(0, MAX_NODES).map(({ id, damage }) => shortened(`${id}: ${damage}`));
    const subject = counted(nodes.length, 'backing node');
    return {
      kind: 'damaged-backing-nodes',
      severity: 'warning',
      key: `damaged backing nodes ${provider}`,
      title: `The data of ${subject} of provider ${shortened(provider, MAX_NAME)} is damaged`,
      subject: { kind: 'provider', id: provider },
      since: null,
      cause: 'ZooKeeper',
      details: withRest(details, nodes.length),
      effect: 'they get no further nodes, and are released without any',
      remedy: 'Find the program that wrote to their records. No launcher needs help.',
    };
  });
}
