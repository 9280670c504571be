/** The section of unfulfilled requests, with the reason why each waits. */

import { h, type Child } from './dom.js';
import type { RequestsStatus, RequestStatus } from './status.js';
import { counted } from './text.js';
import { age, badge, nothing, table, type Present } from './widgets.js';

const COLUMNS = ['Request', 'Labels', 'Since', 'Why'];

export function requestsSection({ waiting, pending, oldest, first }: RequestsStatus, present: Present): Child[] {
  if (first.length === 0) return [nothing('No request waits.')];
  const left = waiting + pending - first.length;
  const rows = first.map((request) => ({ key: request.id, cells: cellsOf(request, present) }));
  return [
    h(
      'p',
      { class: 'lead' },
      `${counted(waiting, 'request')} wait${waiting === 1 ? 's' : ''}`,
      ...(oldest === null ? [] : [', the oldest for ', age(oldest, present)]),
      `; ${pending} in progress.`,
    ),
    table('Requests in the order of service', COLUMNS, rows),
    left === 0
      ? undefined
      : h('p', { class: 'more' }, h('a', { href: 'request-list' }, `and ${counted(left, 'more request')}`)),
  ];
}

function cellsOf({ id, state, labels, since, requestor, reason }: RequestStatus, present: Present): Child[][] {
  const wanted = labels.map(({ label, count }) =>
    h('span', { class: 'label', 'data-key': label }, count === 1 ? label : `${label} ×${count}`),
  );
  return [
    [
      h('a', { href: `explain/request/${encodeURIComponent(id)}` }, id),
      h('span', { class: 'quiet' }, requestor === '' ? undefined : ` ${requestor}`),
    ],
    wanted,
    [age(since, present)],
    [state === 'pending' ? badge('in progress', 'busy') : badge('waits', 'idle'), ` ${reason}`],
  ];
}
