/** The columns of requests, nodes and decisions, which several pages list. */

import { h, type Child } from './dom.js';
import { joined, labelChip, link, name } from './links.js';
import type { DecisionStatus, NodeRow, Phase, PoolAnswer, RequestRow, WaitStatus } from './model.js';
import { table, type Column } from './table.js';
import { numberText } from './text.js';
import { nodeBadge, reasonBadge, requestBadge } from './tones.js';
import { age, moment, type Present } from './widgets.js';

export function requestColumns(present: Present): Column<RequestRow>[] {
  return [
    {
      title: 'Request',
      sort: 'id',
      cell: ({ id }) => [link('request', id)],
    },
    {
      title: 'Labels',
      cell: ({ labels }) => labels.map(({ label, count }) => labelChip(label, count)),
    },
    { title: 'State', cell: ({ state }) => [requestBadge(state)] },
    {
      title: 'Age',
      sort: 'age',
      numeric: true,
      cell: ({ created, ended }) =>
        ended === null
          ? [age(created, present)]
          : [h('span', { class: 'quiet' }, 'ended '), age(ended, present), ' ago'],
    },
    {
      title: 'Reason',
      cell: ({ state, phase, reason, pool }) => [
        ...(state === 'requested' ? [reasonBadge(waitPhase(phase)), ' '] : []),
        h('span', { class: 'reason' }, reason),
        pool === null ? undefined : h('span', { class: 'quiet below' }, link('pool', pool)),
      ],
    },
    {
      title: 'Requestor',
      sort: 'requestor',
      wideOnly: true,
      cell: ({ requestor, tenant, priority }) => [
        name(requestor),
        h(
          'span',
          { class: 'quiet below' },
          ...joined(
            [
              tenant === null ? undefined : name(tenant),
              priority === 0 ? undefined : `priority ${numberText(priority)}`,
            ].filter((each) => each !== undefined),
          ),
        ),
      ],
    },
  ];
}

/** Returns the kind of wait of a phase. */
function waitPhase(phase: Phase | null): WaitStatus['phase'] {
  switch (phase) {
    case 'limit':
    case 'order':
    case 'capacity':
    case 'image':
    case 'elsewhere':
      return phase;
    default:
      return 'none';
  }
}

export function nodeColumns(present: Present): Column<NodeRow>[] {
  const text = (value: string | null): Child[] => (value === null ? [] : [name(value)]);
  return [
    {
      title: 'Node',
      sort: 'id',
      cell: ({ id }) => [link('node', id)],
    },
    {
      title: 'State',
      sort: 'state',
      cell: ({ state, locked, interruption, slots }) => [
        nodeBadge(state),
        slots === null ? undefined : ` (${slots})`,
        interruption === null ? undefined : h('span', { class: 'bad', title: interruption }, ' loses its instance'),
        locked
          ? h('span', { class: 'quiet lock', title: 'a program holds the lock of the node' }, ' locked')
          : undefined,
      ],
    },
    { title: 'In state', sort: 'age', numeric: true, cell: ({ since }) => [age(since, present)] },
    {
      title: 'Age',
      sort: 'created',
      numeric: true,
      wideOnly: true,
      cell: ({ created }) => (created === null ? [] : [age(created, present)]),
    },
    { title: 'Labels', sort: 'label', cell: ({ labels }) => labels.map((label) => labelChip(label)) },
    {
      title: 'Pool',
      sort: 'provider',
      cell: ({ provider, pool, az }) => [
        provider === null
          ? undefined
          : link('pool', `${provider}/${pool ?? ''}`, pool === null ? provider : `${provider}/${pool}`),
        az === null ? undefined : h('span', { class: 'quiet below' }, name(az)),
      ],
    },
    {
      title: 'Request',
      cell: ({ request, requestor, comment }) => [
        request === null ? undefined : link('request', request),
        comment === null && requestor === null
          ? undefined
          : h('span', { class: 'quiet below' }, name(comment ?? requestor ?? '')),
      ],
    },
    {
      title: 'Address',
      wideOnly: true,
      cell: ({ ip, externalId, hostname }) => [
        ...text(ip ?? hostname),
        externalId === null ? undefined : h('span', { class: 'quiet below cut', title: externalId }, name(externalId)),
      ],
    },
  ];
}

export function decisionTable(decisions: readonly DecisionStatus[]): HTMLElement {
  return table({
    caption: 'Decisions, newest first',
    columns: [
      { title: 'Last', cell: ({ last }) => [moment(last)] },
      {
        title: 'By',
        cell: ({ by }) => [/^[^/\s]+\/[^/\s]+$/.test(by) ? link('pool', by) : name(by)],
      },
      { title: 'Decision', cell: ({ decision }) => [h('b', {}, decision)] },
      { title: 'Reason', cell: ({ reason }) => [reason ?? ''] },
      {
        title: 'Times',
        numeric: true,
        cell: ({ times, first }) =>
          times === 1
            ? ['once']
            : [`${numberText(times)}×`, h('span', { class: 'quiet below' }, 'from ', moment(first))],
      },
    ],
    rows: [...decisions].sort((a, b) => b.last - a.last),
    key: ({ by, decision, reason, first }) => `${by} ${decision} ${reason ?? ''} ${first}`,
  });
}

export function poolAnswersTable(pools: readonly PoolAnswer[]): HTMLElement {
  return table({
    caption: 'Pools',
    columns: [
      { title: 'Pool', cell: ({ pool }) => [link('pool', pool)] },
      { title: 'Launcher', cell: ({ launcher }) => [link('program', launcher)] },
      { title: 'Answer', cell: ({ says }) => [says] },
    ],
    rows: pools,
    key: ({ pool, launcher }) => `${pool} ${launcher}`,
  });
}
