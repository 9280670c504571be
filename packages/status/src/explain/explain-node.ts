/** Explains a node: the work on it, the program that does the work, and what the work waits for. */

import { slotPlaceOf } from '@nodepool/core';
import { backingSlots, isOffered, slotText, type NodeEntry } from '@nodepool/store';
import type { Explanation } from './explanation-text.js';
import type { NodeLife } from '../timeline/node-life.js';
import { explainDecisions, explainLife, latestDecision, sentence, type ExplanationSources } from './explanation.js';

/** Returns undefined if the node does not exist and nothing about it is recorded. */
export function explainNode(sources: ExplanationSources, id: string): Explanation | undefined {
  const { store, decisions } = sources;
  const entry = store.nodes.get(id);
  const decided = decisions.of('node', id);
  const life = sources.timelines.node(id);
  if (entry === undefined && decided.length === 0 && life === undefined) return undefined;
  const work = entry === undefined ? undefined : workOn(sources, id);
  const sentences = [
    entry === undefined ? 'The node is deleted.' : `${summaryOf(entry, isOffered(sources.store, entry.node))}.`,
  ];
  const unserved = entry === undefined ? undefined : unservedProvider(sources, entry);
  if (unserved !== undefined) sentences.push(unserved);
  const lost = interruptionOf(entry);
  if (lost !== undefined) sentences.push(sentence(lost));
  const slots = entry === undefined ? undefined : slotsOf(sources, entry);
  if (slots !== undefined) sentences.push(sentence(slots));
  if (work !== undefined) sentences.push(`${work}.`);
  const latest = latestDecision(decided);
  if (latest !== undefined) sentences.push(sentence(`Last decision here: ${latest}`));
  return {
    kind: 'node',
    id,
    summary: sentences.join(' '),
    facts: entry === undefined ? factsOfLife(life) : { ...factsOf(entry), ...slotFacts(sources, entry) },
    pools: [],
    timeline: explainLife(life, sources.clock.now()),
    decisions: explainDecisions(decided),
  };
}

/** Returns the node's facts; its credentials must never be among them. */
function factsOf({ node, locked }: NodeEntry): Explanation['facts'] {
  return {
    state: node.state,
    state_time: node.state_time,
    created_time: node.created_time,
    locked,
    type: node.type,
    provider: node.provider,
    pool: node.pool,
    az: node.az,
    launcher: node.launcher,
    allocated_to: node.allocated_to,
    external_id: node.external_id,
    requestor: node.requestor,
    comment: node.comment,
    hold_job: node.hold_job,
    attempt: node.progress?.number ?? null,
    machine_type: node.machine_type ?? node.progress?.machine_type ?? null,
    interruption: node.interruption === null ? null : { ...node.interruption },
  };
}

/** Returns the use of a backing node's slots, or the slot of a node on one, in words. */
function slotsOf({ store }: Pick<ExplanationSources, 'store'>, entry: NodeEntry): string | undefined {
  const slots = backingSlots(store.nodes, entry);
  const place = slotText(entry.node);
  if (slots === undefined) return place === undefined ? undefined : `It has ${place}`;
  const end = slots.closed === undefined ? '' : `; it gets no further nodes: ${slots.closed}`;
  return `Slots${slots.label === null ? '' : ` for label ${slots.label}`}: ${slots.text}${end}`;
}

function slotFacts({ store }: ExplanationSources, entry: NodeEntry): Explanation['facts'] {
  const slots = backingSlots(store.nodes, entry);
  const place = slotPlaceOf(entry.node);
  return {
    ...(slots === undefined ? {} : { slots: slots.slots, slots_used: Object.fromEntries(slots.used) }),
    ...(place === undefined ? {} : { backing_node: place.backingNode, slot: place.slot }),
  };
}

/** Returns the loss of the node's instance in words, with the time of its end if that is known. */
export function interruptionOf(entry: Pick<NodeEntry, 'node'> | undefined): string | undefined {
  const interruption = entry?.node.interruption ?? null;
  if (interruption === null) return undefined;
  const { kind, reason, ends_at: endsAt } = interruption;
  const end = endsAt === null ? '' : `; it ends at ${new Date(endsAt * 1000).toISOString()}`;
  return `Interrupted (${kind}): ${reason}${end}`;
}

function factsOfLife(life: NodeLife | undefined): Explanation['facts'] {
  if (life === undefined) return {};
  const { labels, provider, pool, request } = life.facts;
  return { type: labels, provider, pool, allocated_to: request };
}

function summaryOf({ node, locked }: NodeEntry, offered: boolean): string {
  const forRequest = node.allocated_to === null ? '' : ` for request ${node.allocated_to}`;
  switch (node.state) {
    case 'init':
    case 'building':
    case 'testing': {
      const attempt = `attempt ${node.progress?.number ?? 1}`;
      return locked
        ? `Being launched${forRequest}, ${attempt}`
        : `Its launch${forRequest} (${attempt}) was interrupted: a launcher resumes it, or deletes the node if no request needs it`;
    }
    case 'ready':
      if (node.allocated_to !== null) return `Ready, and handed out${forRequest}`;
      return offered ? 'Ready, and free for any request' : 'Ready, but no registered pool hands it out';
    case 'in-use':
      return locked ? 'In use by its requestor' : 'In use, but its requestor has unlocked it: to be deleted';
    case 'hold':
      return 'On hold for inspection';
    case 'used':
    case 'failed':
    case 'aborted':
    case 'deleting':
      return locked ? `State ${node.state}: being deleted, or to be deleted` : `State ${node.state}: to be deleted`;
    case 'deleted':
      return 'Its instance is deleted; the record will be deleted';
  }
}

/** Returns a sentence about a node that waits for a launcher of its provider, if there is none. */
function unservedProvider({ store }: ExplanationSources, { node, locked }: NodeEntry): string | undefined {
  const { provider } = node;
  if (locked || node.state === 'ready' || node.state === 'hold' || !store.components.complete) return undefined;
  if ([...store.components.pools()].some((pool) => pool.provider_name === provider)) return undefined;
  return `No registered launcher serves provider ${provider ?? ''}, so the node remains until one does.`;
}

/** Returns a description of the driver's work on the node. */
function workOn({ activity }: ExplanationSources, id: string): string | undefined {
  for (const { provider, work } of activity()) {
    const found = work.find(({ nodeId }) => nodeId === id);
    if (found === undefined) continue;
    const { kind, state, ageMs, waitingFor, waitingMs } = found;
    return `Provider ${provider}: ${kind} for ${inSeconds(ageMs)}, in state ${state}, waits for ${waitingFor} for ${inSeconds(waitingMs)}`;
  }
  return undefined;
}

function inSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
