/** The list of problems: what is wrong, since when, the cause, the effect and the remedy. */

import { h, type Child } from './dom.js';
import { hrefOf } from './links.js';
import type { Problem } from './model.js';
import { counted } from './text.js';
import { age, withCode, type Present } from './widgets.js';

const SEVERITIES: Readonly<Record<Problem['severity'], string>> = {
  critical: 'Critical',
  warning: 'Warning',
  info: 'Note',
};

const CAUSES: Readonly<Record<Problem['cause'], string>> = {
  cloud: 'cloud',
  configuration: 'configuration',
  limit: 'limits',
  image: 'image',
  ZooKeeper: 'ZooKeeper',
  driver: 'driver',
  Nodepool: 'Nodepool',
};

/** Number of problems that are shown at once. */
const MAX_SHOWN = 6;

export function problemList(problems: readonly Problem[], present: Present): Child[] {
  const list = (key: string, some: readonly Problem[]): HTMLElement =>
    h('ul', { class: 'problems', 'data-key': key }, ...some.map((problem) => item(problem, present)));
  // A fold of one problem would save no space.
  const shown = problems.length === MAX_SHOWN + 1 ? problems.length : MAX_SHOWN;
  const more = problems.slice(shown);
  return [
    list('problems', problems.slice(0, shown)),
    more.length === 0
      ? undefined
      : h(
          'details',
          { class: 'events', 'data-key': 'more' },
          h('summary', {}, counted(more.length, 'more problem')),
          list('more', more),
        ),
  ];
}

function item(
  { severity, key, title, subject, since, cause, details, effect, remedy }: Problem,
  present: Present,
): Child {
  return h(
    'li',
    { class: `problem ${severity}`, 'data-key': key },
    h(
      'div',
      { class: 'problem-head' },
      h('span', { class: 'hidden' }, `${SEVERITIES[severity]}: `),
      subject === null ? h('strong', {}, title) : h('strong', {}, h('a', { href: hrefOf(subject) }, title)),
      h('span', { class: 'cause' }, 'cause: ', h('b', {}, CAUSES[cause])),
      since === null ? undefined : h('span', { class: 'quiet since' }, 'for ', age(since, present)),
    ),
    details.length === 0
      ? undefined
      : h(
          'div',
          { class: 'problem-details' },
          ...details.map((detail, index) => h('p', { 'data-key': index }, ...withCode(detail))),
        ),
    effect === null && remedy === null
      ? undefined
      : h(
          'dl',
          { class: 'problem-what' },
          ...[
            ['Effect', effect],
            ['Remedy', remedy],
          ].flatMap(([term, text]) =>
            text === null || text === undefined || term === undefined || term === null
              ? []
              : [h('div', { 'data-key': term }, h('dt', {}, term), h('dd', {}, ...withCode(text)))],
          ),
        ),
  );
}
