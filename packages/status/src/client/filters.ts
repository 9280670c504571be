/** Filters of a list: a form whose fields are the parameters of the route, so that every state has a URL. */

import { after } from './clock.js';
import { h, type Child } from './dom.js';
import type { Facet } from './model.js';
import type { Route } from './route.js';
import { routeHref } from './table.js';
import { numberText } from './text.js';

const TYPING_MS = 250;

export interface SelectFilter {
  readonly parameter: string;
  readonly title: string;
  /** Text of the choice that does not filter. */
  readonly all: string;
  readonly options: Facet;
}

/** Returns the form of a list: a search and one selection for each filter. */
export function filters(route: Route, search: string, selects: readonly SelectFilter[]): HTMLElement {
  const parameters = ['q', ...selects.map(({ parameter }) => parameter)];
  const active = parameters.some((parameter) => route.query.has(parameter));
  return h(
    'form',
    { class: 'filters', role: 'search', 'aria-label': 'Filters', 'data-filters': 'yes', 'data-key': 'filters' },
    h(
      'label',
      { class: 'grow', 'data-key': 'q' },
      h('span', {}, 'Search'),
      h('input', { type: 'search', name: 'q', placeholder: search, autocomplete: 'off', maxlength: 200 }),
    ),
    ...selects.map((select) => selection(route, select)),
    h(
      'a',
      {
        class: active ? 'button' : 'button off',
        href: active
          ? routeHref(route, Object.fromEntries(['offset', ...parameters].map((each) => [each, undefined])))
          : undefined,
        'data-key': 'clear',
      },
      'Clear',
    ),
  );
}

function selection(route: Route, { parameter, title, all, options }: SelectFilter): HTMLElement {
  const current = route.query.get(parameter) ?? '';
  const known = options.some(({ value }) => value === current);
  const choices: Child[] = options.map(({ value, count }) =>
    h('option', { value, 'data-key': value }, `${value} (${numberText(count)})`),
  );
  return h(
    'label',
    { 'data-key': parameter },
    h('span', {}, title),
    h(
      'select',
      { name: parameter },
      h('option', { value: '', 'data-key': '' }, all),
      // A link may select a value that no row has at the moment.
      ...(current === '' || known ? [] : [h('option', { value: current, 'data-key': current }, current)]),
      ...choices,
    ),
  );
}

/** Sets the fields to the parameters of the route, except for the one that the viewer is editing. */
export function syncFilters({ query }: Route): void {
  for (const field of document.querySelectorAll<HTMLInputElement | HTMLSelectElement>('[data-filters] [name]')) {
    const value = query.get(field.name) ?? '';
    if (field !== document.activeElement && field.value !== value) field.value = value;
  }
}

/** Follows the forms: a selection is a new entry of the browser's history, typing replaces the entry. */
export function watchFilters(current: () => Route, go: (href: string, replace: boolean) => void): void {
  let typed = 0;
  const change = (event: Event, replace: boolean): void => {
    const { target } = event;
    if (!(target instanceof HTMLInputElement || target instanceof HTMLSelectElement)) return;
    if (target.closest('[data-filters]') === null) return;
    const { name, value } = target;
    const apply = (): void => go(routeHref(current(), { [name]: value, offset: undefined }), replace);
    typed += 1;
    const round = typed;
    if (replace) after(TYPING_MS, () => (round === typed ? apply() : undefined));
    else apply();
  };
  document.addEventListener('change', (event) => {
    if (event.target instanceof HTMLSelectElement) change(event, false);
  });
  document.addEventListener('input', (event) => {
    if (event.target instanceof HTMLInputElement) change(event, true);
  });
  document.addEventListener('submit', (event) => event.preventDefault());
}
