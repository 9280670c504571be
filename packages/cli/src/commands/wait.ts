/** `nodepool wait request|node|label ID`: waits for a condition, for scripts. */

import { NODE_STATES, TimerQueue, withDeadline, printable, type NodeRequest } from '@nodepool/core';
import { CommandError, UsageError, type StoreContext } from '../command-context.js';
import { parseNodeId } from '../node-id.js';
import { namesOf, suggestionFor } from '../unknown-subject.js';
import { waitUntil } from '../wait.js';

export interface WaitOptions {
  /** State of a node, or `gone`; undefined: `ready`. */
  readonly state: string | undefined;
  /** Time limit in seconds; undefined: no limit. */
  readonly timeout: number | undefined;
}

interface Condition {
  readonly description: string;
  /** Returns the text to print once the condition holds. Throws `CommandError` if it can never hold. */
  check(): string | undefined;
  subscribe(listener: () => void): () => void;
}

/**
 * Prints the ids of the nodes (of a fulfilled request, of the label) or the state of the node. Rejects with
 * `CommandError` at the deadline, or once the condition can never hold, and with `UsageError` if `--state` is invalid.
 */
export async function wait(
  context: StoreContext,
  kind: 'request' | 'node' | 'label',
  id: string,
  { state, timeout }: WaitOptions,
): Promise<void> {
  if (kind !== 'node' && state !== undefined) throw new UsageError('--state is for nodes only; leave it out');
  const condition = conditionOf(context, kind, id, state);
  const { interrupted, out, clock } = context;
  // A launcher that is starting may serve the label later.
  if (kind === 'label' && condition.check() === undefined && !namesOf(context, kind).includes(id)) {
    out.note(`no launcher serves the label ${JSON.stringify(id)} yet: ${suggestionFor(context, kind, id)}`);
  }
  const limits = {
    timers: new TimerQueue(clock),
    signal: interrupted,
    deadline: timeout === undefined ? Infinity : clock.monotonic() + timeout * 1000,
    onDeadline: () =>
      new CommandError(
        `${condition.description}: not reached within ${timeout} s; \`nodepool explain ${kind} ${id}\` shows the reason`,
      ),
  };
  const found = await withDeadline(limits, (signal) =>
    waitUntil(
      () => condition.check(),
      (listener) => condition.subscribe(listener),
      signal,
    ),
  );
  out.print(found);
}

function conditionOf(context: StoreContext, kind: string, id: string, state: string | undefined): Condition {
  if (kind === 'request') return requestFulfilled(context, id);
  return kind === 'node' ? nodeInState(context, parseNodeId(id), state ?? 'ready') : labelReady(context, id);
}

function requestFulfilled({ store: { requests } }: StoreContext, id: string): Condition {
  return {
    description: `request ${id} is fulfilled`,
    check: () => {
      const request = requests.get(id)?.request;
      if (request === undefined) throw new CommandError(`there is no request ${id} (any more)`);
      if (request.state === 'failed') {
        throw new CommandError(`request ${id} failed: ${declines(request)}`);
      }
      return request.state === 'fulfilled' ? request.nodes.map(printable).join('\n') : undefined;
    },
    subscribe: (listener) => requests.onChange(listener),
  };
}

/** Returns the pools that declined the request, each with its reason if the launcher has recorded it. */
function declines({ declined_by: pools, decline_reasons: reasons }: NodeRequest): string {
  const texts = pools.map((pool) => (reasons[pool] === undefined ? pool : `${pool} (${reasons[pool]})`));
  return `declined by ${texts.join(', ') || 'no pool'}`;
}

function nodeInState({ store: { nodes } }: StoreContext, id: string, wanted: string): Condition {
  if (wanted !== 'gone' && !NODE_STATES.some((state) => state === wanted)) {
    throw new UsageError(`${wanted} is not a state of nodes; states are ${NODE_STATES.join(', ')}, and gone`);
  }
  return {
    description: `node ${id} is ${wanted}`,
    check: () => {
      const state = nodes.get(id)?.node.state;
      if (state === undefined && wanted !== 'gone') throw new CommandError(`there is no node ${id} (any more)`);
      return (state ?? 'gone') === wanted ? wanted : undefined;
    },
    subscribe: (listener) => nodes.onChange(listener),
  };
}

function labelReady({ store: { nodes } }: StoreContext, label: string): Condition {
  return {
    description: `label ${label} has a node that is ready`,
    check: () => {
      const ready = [...nodes.inState('ready')].filter(({ node }) => node.type.includes(label));
      return ready.length === 0 ? undefined : ready.map(({ id }) => id).join('\n');
    },
    subscribe: (listener) => nodes.onChange(listener),
  };
}
