/** The sections of launchers and builders, and of recent failures. */

import { h, type Child } from './dom.js';
import type { ComponentStatus, FailureStatus } from './status.js';
import { age, badge, nothing, table, type Present } from './widgets.js';

export function componentsSection(components: readonly ComponentStatus[]): Child[] {
  if (components.length === 0) return [nothing('No launcher and no builder is registered.')];
  const rows = components.map(({ kind, hostname, state, version, drivers }, index) => ({
    key: `${kind} ${hostname} ${index}`,
    cells: [
      [h('b', {}, hostname)],
      [`${kind} ${version}`],
      [badge(state, state === 'running' ? 'good' : 'busy')],
      drivers.length === 0
        ? [h('span', { class: 'quiet' }, 'none')]
        : drivers.map(({ name, version: of }) => h('span', { class: 'label', 'data-key': name }, `${name} ${of}`)),
    ],
  }));
  const hasBuilder = components.some(({ kind }) => kind === 'builder');
  return [
    table('Launchers and builders', ['Host', 'Program', 'State', 'Drivers'], rows),
    hasBuilder
      ? undefined
      : h('p', { class: 'quiet' }, 'No builder is registered: images are neither built nor uploaded.'),
  ];
}

export function failuresSection(failures: readonly FailureStatus[], present: Present): Child[] {
  if (failures.length === 0) return [nothing('No warning and no error since the launcher was started.')];
  return [h('ul', { class: 'failures' }, ...failures.map((failure) => failureOf(failure, present)))];
}

function failureOf(failure: FailureStatus, present: Present): HTMLElement {
  const { level, message, reason, first, last, times, provider, pool, label, node, request } = failure;
  const place = [provider, pool].filter((each) => each !== null).join('/');
  return h(
    'li',
    { 'data-key': `${message} ${place} ${label ?? ''} ${reason ?? ''}` },
    h(
      'p',
      {},
      badge(level, level === 'error' ? 'bad' : 'busy'),
      h('b', {}, ` ${message} `),
      h(
        'span',
        { class: 'quiet' },
        age(last, present),
        ' ago',
        ...(times === 1 ? [] : [`, ${times} times in `, age(first, present)]),
      ),
    ),
    reason === null ? undefined : h('p', { class: 'reason' }, reason),
    h(
      'p',
      { class: 'quiet' },
      place === '' ? undefined : h('span', { class: 'label' }, place),
      label === null ? undefined : explained('label', label),
      node === null ? undefined : explained('node', node),
      request === null ? undefined : explained('request', request),
    ),
  );
}

function explained(kind: 'label' | 'node' | 'request', id: string): HTMLElement {
  return h('a', { class: 'label', href: `explain/${kind}/${encodeURIComponent(id)}` }, `${kind} ${id}`);
}
