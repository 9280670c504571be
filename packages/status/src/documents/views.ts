/** The views of the status page by their addresses, e.g. `nodes?state=ready` or `node/0000000042`. */

import type { Observed } from './sources.js';
import { documentOf, readParameters, VIEWS } from './index.js';
import { launcherStatus } from './overview.js';

/**
 * Returns the document of a view; its member `missing` is true if the subject is unknown. Returns undefined if there is
 * no such view. Throws `BadQueryError` if the parameters are invalid.
 */
export function viewDocument(observe: () => Observed, view: string): object | undefined {
  const [path = '', query = ''] = cut(view, '?');
  const [name = '', id = ''] = cut(path, '/');
  const known = VIEWS.get(name);
  if (known === undefined || known.hasSubject !== (id !== '')) return undefined;
  const parameters = readParameters(decoded(id), valuesOf(new URLSearchParams(query)), known.list);
  const observed = observe();
  const document = documentOf(observed, name, parameters);
  if (document === undefined) return { launcher: launcherStatus(observed), missing: true };
  return { ...withPresentStep(document), missing: false };
}

/**
 * Moves the last step of the history to the member `presentStep`: it changes with every launch, and the stream sends a
 * changed member completely.
 */
function withPresentStep(document: object): object {
  if (!('history' in document)) return document;
  const { history } = document;
  if (Array.isArray(history)) return { ...document, history: history.slice(0, -1), presentStep: history.slice(-1) };
  if (typeof history !== 'object' || history === null || !('samples' in history)) return document;
  const { samples } = history;
  if (!Array.isArray(samples)) return document;
  return { ...document, history: { ...history, samples: samples.slice(0, -1) }, presentStep: samples.slice(-1) };
}

/** Returns the values of a query by name; a repeated parameter has a list of values. */
function valuesOf(query: URLSearchParams): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const name of new Set(query.keys())) {
    const all = query.getAll(name);
    values[name] = all.length === 1 ? all[0] : all;
  }
  return values;
}

function cut(text: string, separator: string): string[] {
  const index = text.indexOf(separator);
  return index < 0 ? [text] : [text.slice(0, index), text.slice(index + 1)];
}

/** Decodes an address, which can have invalid escapes if a user typed it. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return text;
    throw error;
  }
}
