/** The page of a node: its state, its timeline, and the decisions about it. */

import { h } from './dom.js';
import { jobName, labelChip, link, name } from './links.js';
import type { JobLink, NodeDocument, NodeRow } from './model.js';
import type { View } from './page.js';
import { decisionTable } from './rows.js';
import { timeline } from './timeline.js';
import { nodeBadge } from './tones.js';
import { age, facts, moment, section, type Present } from './widgets.js';

export const nodePage: View<NodeDocument> = {
  title: ({ id }) => `Node ${id ?? ''}`,
  draw: ({ document, present, route: { id = '' } }) => {
    const { node, summary, facts: known, job, timeline: segments, decisions } = document;
    return [
      h('h1', { tabindex: -1 }, 'Node ', name(id), ' ', node === null ? undefined : nodeBadge(node.state)),
      h('p', { class: `callout ${isBad(node) ? 'bad' : 'idle'}`, 'data-key': 'callout' }, summary),
      node === null ? rememberedFacts(known) : nodeFacts(node, job, present),
      section('Timeline', undefined, ...timeline([{ key: 'node', title: 'node', segments }], present)),
      decisions.length === 0 ? undefined : section('Decisions', 'of this launcher', decisionTable(decisions)),
    ];
  },
};

function isBad(node: NodeRow | null): boolean {
  return node !== null && (node.state === 'failed' || node.interruption !== null);
}

/** Returns the facts that the launcher remembers about a deleted node. */
function rememberedFacts({ provider, pool, type, allocated_to: request }: NodeDocument['facts']): HTMLElement {
  const labels = Array.isArray(type) ? type.filter((label) => typeof label === 'string') : [];
  return facts(
    ['Labels', labels.length === 0 ? undefined : labels.map((label) => labelChip(label))],
    [
      'Pool',
      typeof provider !== 'string' || typeof pool !== 'string' ? undefined : [link('pool', `${provider}/${pool}`)],
    ],
    ['Request', typeof request === 'string' ? [link('request', request)] : undefined],
  );
}

function nodeFacts(node: NodeRow, job: JobLink | null, present: Present): HTMLElement {
  const text = (value: string | null): [HTMLElement] | undefined => (value === null ? undefined : [name(value)]);
  const { provider, pool } = node;
  return facts(
    ['Labels', node.labels.map((label) => labelChip(label))],
    [
      'Pool',
      provider === null
        ? undefined
        : [link('pool', `${provider}/${pool ?? ''}`, pool === null ? provider : `${provider}/${pool}`)],
    ],
    ['Zone', text(node.az)],
    ['Machine type', text(node.machineType)],
    ['In this state', [age(node.since, present), node.locked ? ', locked' : ', not locked']],
    ['Created', node.created === null ? undefined : [moment(node.created), ', ', age(node.created, present), ' ago']],
    ['Request', node.request === null ? undefined : [link('request', node.request)]],
    ['Requestor', text(node.requestor)],
    ['Job', job === null ? undefined : jobName(job)],
    ['Tenant', text(node.tenant)],
    ['Server', text(node.externalId)],
    ['Host name', text(node.hostname)],
    ['Address', text(node.ip)],
    ['Launcher', text(node.launcher)],
    ['Comment', text(node.comment)],
    ['Interruption', text(node.interruption)],
    ['Slots', text(node.slots)],
    [
      'Backing node',
      node.backingNode === null ? undefined : [link('node', node.backingNode), `, slot ${node.slot ?? 'unknown'}`],
    ],
  );
}
