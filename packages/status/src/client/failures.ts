/** The last warnings and errors of the launcher's log. */

import { h } from './dom.js';
import { labelChip, link } from './links.js';
import type { FailureStatus } from './model.js';
import { numberText } from './text.js';
import { age, badge, nothing, type Present } from './widgets.js';

export function failureList(failures: readonly FailureStatus[], present: Present): HTMLElement {
  if (failures.length === 0) return nothing('No warning and no error since the launcher was started.');
  return h('ul', { class: 'failures', 'data-key': 'failures' }, ...failures.map((failure) => item(failure, present)));
}

function item(failure: FailureStatus, present: Present): HTMLElement {
  const { level, message, reason, first, last, times, provider, pool, label, node, request } = failure;
  const place =
    provider === null ? undefined : pool === null ? link('provider', provider) : link('pool', `${provider}/${pool}`);
  return h(
    'li',
    { 'data-key': `${message} ${provider ?? ''} ${pool ?? ''} ${label ?? ''} ${reason ?? ''}` },
    h(
      'p',
      { class: 'failure-head' },
      badge(level, level === 'error' ? 'bad' : 'busy'),
      h('b', {}, message),
      h(
        'span',
        { class: 'quiet' },
        age(last, present),
        ' ago',
        ...(times === 1 ? [] : [`, ${numberText(times)} times in `, age(first, present)]),
      ),
    ),
    reason === null ? undefined : h('p', { class: 'reason' }, reason),
    h(
      'p',
      { class: 'quiet subjects' },
      place,
      label === null ? undefined : labelChip(label),
      node === null ? undefined : h('span', { 'data-key': 'node' }, 'node ', link('node', node)),
      request === null ? undefined : h('span', { 'data-key': 'request' }, 'request ', link('request', request)),
    ),
  );
}
