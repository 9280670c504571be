/** The overview: the problems, the numbers, the reasons to wait, a day of history, and the providers. */

import { h, type Child } from './dom.js';
import { labelChip, link, pageHref } from './links.js';
import type { OverviewDocument, ReasonGroup, RequestCounts } from './model.js';
import type { Drawing, View } from './page.js';
import { labelTable } from './page-labels.js';
import { failureList } from './failures.js';
import { costSections } from './costs.js';
import { overviewCharts } from './history.js';
import { problemList } from './problems.js';
import { providerTable } from './page-providers.js';
import { table } from './table.js';
import { ageText, counted, durationText, numberText } from './text.js';
import { reasonBadge } from './tones.js';
import { age, bar, GROUP_STATES, section, type Present } from './widgets.js';

const MAX_LABELS = 8;

export const overviewPage: View<OverviewDocument> = {
  title: () => 'Overview',
  draw: (drawing) => {
    const { document, present } = drawing;
    return [
      h('h1', { class: 'hidden', tabindex: -1 }, 'Overview'),
      problems(drawing),
      tiles(document, present),
      waiting(document, present),
      overviewCharts(document.history, document, present.now()),
      section('Providers', undefined, providerTable(document.providers, present)),
      labels(document, present),
      ...costSections(document.costs),
      section('Recent failures', 'from the log of this launcher', failureList(document.failures, present)),
    ];
  },
};

function problems({ document, present }: Drawing<OverviewDocument>): HTMLElement {
  if (document.problems.length > 0) {
    const worst = document.problems.filter(({ severity }) => severity === 'critical').length;
    const detail = worst === 0 ? undefined : `${numberText(worst)} critical`;
    return section('Problems', detail, ...problemList(document.problems, present));
  }
  const { waiting: count, oldest } = document.requests;
  return h(
    'p',
    { class: 'all-well', 'data-key': 'all-well' },
    h('b', {}, 'No problems. '),
    count === 0 || oldest === null ? 'No request waits.' : waitText(count, present.now() - oldest),
  );
}

/** Returns e.g. `3 requests wait, the longest for 12 s.` */
function waitText(count: number, seconds: number): string {
  const longest = seconds < 1 ? '' : `, ${count === 1 ? '' : 'the longest '}for ${ageText(seconds)}`;
  return `${counted(count, 'request')} ${count === 1 ? 'waits' : 'wait'}${longest}.`;
}

interface Tile {
  readonly title: string;
  readonly value: string;
  readonly detail: readonly Child[];
  readonly href: string;
  readonly tone?: string;
}

function tiles({ nodes, requests, toNode, history: { samples } }: OverviewDocument, present: Present): HTMLElement {
  const recent = samples.slice(-12);
  const failed = recent.reduce((total, { failures }) => total + failures, 0);
  const launches = recent.reduce((total, sample) => total + sample.launches, 0);
  const list: readonly Tile[] = [
    {
      title: 'Waiting requests',
      value: numberText(requests.waiting),
      detail: requests.oldest === null ? ['none waits'] : ['oldest ', age(requests.oldest, present)],
      href: pageHref(['requests'], { state: 'waiting' }),
    },
    {
      title: 'In progress',
      value: numberText(requests.progress),
      detail: [`${counted(nodes.groups.building, 'node')} building`],
      href: pageHref(['requests'], { state: 'progress' }),
    },
    {
      title: 'Time to node',
      value: toNode.p50 === null ? '–' : durationText(toNode.p50),
      detail: toNode.p95 === null ? ['no request served yet'] : [`95 % within ${durationText(toNode.p95)}`],
      href: pageHref(['labels']),
    },
    {
      title: 'Ready nodes',
      value: numberText(nodes.groups.ready),
      detail: ['for the next request'],
      href: pageHref(['nodes'], { state: GROUP_STATES.ready }),
    },
    {
      title: 'Nodes in use',
      value: numberText(nodes.groups['in use']),
      detail: [`of ${counted(nodes.total, 'node')}`],
      href: pageHref(['nodes'], { state: GROUP_STATES['in use'] }),
    },
    {
      title: 'Failed launches',
      value: numberText(failed),
      detail: [launches === 0 ? 'no launch in the last hour' : `of ${numberText(launches)} in the last hour`],
      href: pageHref(['providers']),
      ...(failed > 0 && failed * 5 >= launches ? { tone: 'bad' } : {}),
    },
  ];
  return h(
    'nav',
    { class: 'tiles', 'aria-label': 'Numbers', 'data-key': 'tiles' },
    ...list.map(({ title, value, detail, href, tone }) =>
      h(
        'a',
        { class: `tile ${tone ?? ''}`.trim(), href, 'data-key': title },
        h('span', { class: 'quiet' }, title),
        h('b', {}, value),
        h('span', { class: 'quiet' }, ...detail),
      ),
    ),
  );
}

export function waitingText({ waiting: count, oldest }: RequestCounts, present: Present): Child[] {
  if (count === 0 || oldest === null) return ['No request waits.'];
  return [
    `${counted(count, 'request')} ${count === 1 ? 'waits' : 'wait'}, ${count === 1 ? 'for' : 'the oldest for'} `,
    age(oldest, present),
    '.',
  ];
}

function waiting({ requests, reasons }: OverviewDocument, present: Present): HTMLElement | undefined {
  if (requests.waiting === 0) return undefined;
  const href = pageHref(['requests'], { state: 'waiting' });
  return section(
    'Why requests wait',
    h('a', { href }, `all ${counted(requests.waiting, 'waiting request')}`),
    reasonTable(reasons, requests.waiting, present),
  );
}

/** Number of reasons that are shown; the smaller groups are in the list of requests. */
const MAX_REASONS = 10;

/** Returns the groups of waiting requests with the same reason, largest first. */
export function reasonTable(reasons: readonly ReasonGroup[], whole: number, present: Present): HTMLElement {
  return table({
    caption: 'Waiting requests by reason',
    columns: [
      {
        title: 'Requests',
        numeric: true,
        cell: ({ count }) => [h('b', { class: 'count' }, numberText(count)), bar(count / Math.max(whole, 1))],
      },
      { title: 'Waits for', cell: ({ phase }) => [reasonBadge(phase)] },
      { title: 'Reason', cell: ({ text }) => [text] },
      { title: 'Best pool', cell: ({ pool }) => (pool === null ? ['none'] : [link('pool', pool)]) },
      { title: 'Oldest', numeric: true, cell: ({ oldest }) => [age(oldest, present)] },
      {
        title: 'Labels',
        wideOnly: true,
        cell: ({ labels: all }) => [
          ...all.slice(0, 3).map((label) => labelChip(label)),
          all.length > 3 ? h('span', { class: 'quiet' }, `and ${numberText(all.length - 3)} more`) : undefined,
        ],
      },
    ],
    rows: reasons.slice(0, MAX_REASONS),
    key: ({ phase, pool, text }) => `${phase} ${pool ?? ''} ${text}`,
  });
}

/** Shows the labels that requests wait for first; the page of labels has all of them. */
function labels({ labels: all }: OverviewDocument, present: Present): HTMLElement {
  const first = [...all].sort((a, b) => b.waiting - a.waiting || b.total - a.total).slice(0, MAX_LABELS);
  const href = pageHref(['labels']);
  return section(
    'Labels',
    all.length > first.length ? h('a', { href }, `all ${counted(all.length, 'label')}`) : undefined,
    labelTable(first, present),
  );
}
