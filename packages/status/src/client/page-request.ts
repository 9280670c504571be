/** The page of a request: what it waits for, its timeline and those of its nodes, and the decisions about it. */

import { h, type Child } from './dom.js';
import { jobName, labelChip, link, name, pageHref } from './links.js';
import type { AttemptStatus, JobLink, RequestDocument, RequestRow, WaitStatus } from './model.js';
import type { View } from './page.js';
import { decisionTable, nodeColumns, poolAnswersTable } from './rows.js';
import { table } from './table.js';
import { durationText, numberText } from './text.js';
import { timeline } from './timeline.js';
import { reasonBadge, requestBadge } from './tones.js';
import { age, badge, facts, moment, section, type Present } from './widgets.js';

export const requestPage: View<RequestDocument> = {
  title: ({ id }) => `Request ${id ?? ''}`,
  draw: ({ document, present, route: { id = '' } }) => {
    const {
      request,
      summary,
      reason,
      reasons,
      job,
      timeline: phases,
      attempts,
      nodes,
      poolAnswers,
      decisions,
    } = document;
    const rows = nodes.flatMap(({ node }) => (node === null ? [] : [node]));
    return [
      h('h1', { tabindex: -1 }, 'Request ', name(id), ' ', request === null ? undefined : requestBadge(request.state)),
      callout(request, reason, summary, present),
      request === null ? undefined : requestFacts(request, job, present),
      section(
        'Timeline',
        request?.ended === undefined || request.ended === null || request.state === 'requested'
          ? undefined
          : `${durationText(request.ended - request.created)} from the request to its end`,
        ...timeline(
          [
            { key: 'request', title: 'request', segments: phases },
            ...nodes.map(({ id: node, timeline: segments }) => ({
              key: node,
              title: link('node', node),
              segments,
            })),
          ],
          present,
        ),
      ),
      attempts.length === 0 ? undefined : attemptTable(attempts),
      rows.length === 0
        ? undefined
        : section(
            'Nodes',
            undefined,
            table({
              caption: `Nodes of request ${id}`,
              columns: nodeColumns(present),
              rows,
              key: (node) => node.id,
            }),
          ),
      reasons.length < 2 ? undefined : alternativePools(reasons.slice(1), present),
      poolAnswers.length === 0 || request?.state === 'fulfilled'
        ? undefined
        : section('Pools', 'what each pool can do for the request', poolAnswersTable(poolAnswers)),
      decisions.length === 0 ? undefined : section('Decisions', 'of this launcher', decisionTable(decisions)),
    ];
  },
};

function callout(
  request: RequestRow | null,
  reason: WaitStatus | null,
  summary: string,
  present: Present,
): HTMLElement {
  const tone =
    request?.state === 'failed' || reason?.phase === 'none' ? 'bad' : request?.state === 'requested' ? 'busy' : 'idle';
  if (reason === null) return h('p', { class: `callout ${tone}`, 'data-key': 'callout' }, summary);
  return h(
    'div',
    { class: `callout ${tone}`, 'data-key': 'callout' },
    h(
      'p',
      {},
      reasonBadge(reason.phase),
      ' ',
      h('b', {}, reason.text),
      h('span', { class: 'quiet' }, ' – for ', age(reason.since, present)),
    ),
    reason.pool === null && reason.missing === null && reason.heldBy.length === 0
      ? undefined
      : facts(
          ['Best pool', reason.pool === null ? undefined : [link('pool', reason.pool)]],
          ['Missing', reason.missing === null ? undefined : [reason.missing]],
          ['Held by', reason.heldBy.length === 0 ? undefined : holders(reason)],
        ),
  );
}

/** Shows the pools that can serve the request later than the best one. */
function alternativePools(reasons: readonly WaitStatus[], present: Present): HTMLElement {
  return section(
    'Other pools that can serve it',
    undefined,
    table({
      caption: 'Reasons to wait in other pools',
      columns: [
        { title: 'Pool', cell: ({ pool }: WaitStatus) => (pool === null ? [] : [link('pool', pool)]) },
        { title: 'Launcher', cell: ({ launcher }) => (launcher === null ? [] : [link('program', launcher)]) },
        { title: 'Waits for', cell: ({ phase }) => [reasonBadge(phase)] },
        { title: 'Reason', cell: ({ text }) => [text] },
        { title: 'Missing', cell: ({ missing }) => [missing ?? ''] },
        { title: 'For', numeric: true, cell: ({ since }) => [age(since, present)] },
      ],
      rows: reasons,
      key: ({ pool, launcher }) => `${pool ?? ''} ${launcher ?? ''}`,
    }),
  );
}

function attemptTable(attempts: readonly AttemptStatus[]): HTMLElement {
  return section(
    'Launch attempts',
    undefined,
    table({
      caption: 'Launch attempts',
      columns: [
        { title: 'Node', cell: ({ node }: AttemptStatus) => [link('node', node)] },
        { title: 'Attempt', numeric: true, cell: ({ number }) => [numberText(number)] },
        { title: 'Label', cell: ({ label }) => [labelChip(label)] },
        { title: 'Pool', cell: ({ pool }) => [link('pool', pool)] },
        { title: 'Ended', cell: ({ ended }) => [moment(ended)] },
        {
          title: 'Result',
          cell: ({ error }) =>
            error === null
              ? [badge('ready', 'good')]
              : [badge(error.code, 'bad'), ' ', h('span', { class: 'reason' }, error.text)],
        },
      ],
      rows: attempts,
      key: ({ node, number }) => `${node} ${number}`,
      tone: ({ error }) => (error === null ? undefined : 'bad'),
    }),
  );
}

function holders({ heldBy, heldByMore }: WaitStatus): Child[] {
  const shown = heldBy.flatMap(({ kind, id }, index) => [index === 0 ? undefined : ', ', `${kind} `, link(kind, id)]);
  return heldByMore > 0 ? [...shown, ` and ${numberText(heldByMore)} more`] : shown;
}

function requestFacts(request: RequestRow, job: JobLink | null, present: Present): HTMLElement {
  const { labels, created, ended, requestor, tenant, priority, pool } = request;
  return facts(
    ['Labels', labels.map(({ label, count }) => labelChip(label, count))],
    ['Requestor', requestor === '' ? undefined : [name(requestor)]],
    [
      'Job',
      job === null ? undefined : [...jobName(job), ' (', h('a', { href: pageHref(['github']) }, 'all jobs'), ')'],
    ],
    ['Tenant', tenant === null ? undefined : [name(tenant)]],
    ['Priority', [numberText(priority), h('span', { class: 'quiet' }, ' (lower is first)')]],
    ['Created', [moment(created), h('span', { class: 'quiet' }, ', ', age(created, present), ' ago')]],
    [
      'Ended',
      ended === null ? undefined : [moment(ended), h('span', { class: 'quiet' }, ', ', age(ended, present), ' ago')],
    ],
    ['Pool', pool === null ? undefined : [link('pool', pool)]],
  );
}
