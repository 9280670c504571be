/**
 * Texts of the configuration with the data of a request in them, e.g. `job {request.requestor_data[job]}`, as existing
 * files have them. The configuration is checked when it is read; a request can make such a text fail no more, whatever
 * it holds.
 */

import { isJsonObject, type JsonValue } from '../model/json.js';
import type { RequestInfo } from './api.js';

/** Says what is wrong with a template, e.g. `there is no request.nme`. */
export class TemplateError extends Error {
  constructor(
    message: string,
    /** What to write instead, when it can be told. */
    readonly hint?: string,
  ) {
    super(message);
    this.name = 'TemplateError';
  }
}

/** What a template can say of a request, by the names that existing files use. */
const FIELDS: Readonly<Record<string, (request: RequestInfo) => JsonValue>> = {
  id: (request) => request.id,
  labels: (request) => request.labels,
  requestor: (request) => request.requestor,
  requestor_data: (request) => request.requestorData,
  relative_priority: (request) => request.relativePriority,
  event_id: (request) => request.eventId,
  created_time: (request) => request.createdTime,
  tenant_name: (request) => request.tenantName,
};

type Part = string | { readonly field: (request: RequestInfo) => JsonValue; readonly keys: readonly string[] };

/** Text, an escaped brace, a placeholder, or a brace that is none of these. */
const TOKEN = /[^{}]+|\{\{|\}\}|\{([^{}]*)\}|[{}]/g;
const PLACEHOLDER = /^request\.(\w+)((?:\[[^[\]]+\])*)$/;

/** A text with placeholders. Immutable. */
export class RequestTemplate {
  private constructor(private readonly parts: readonly Part[]) {}

  /**
   * Reads a template. Placeholders are `{request.<field>}` and, into structures, `{request.<field>[key][key]}`; `{{` and `}}`
   * are braces. Throws `TemplateError`.
   */
  static parse(text: string): RequestTemplate {
    const parts: Part[] = [];
    for (const [token, placeholder] of text.matchAll(TOKEN)) {
      if (placeholder !== undefined) parts.push(parsePlaceholder(placeholder));
      else if (token === '{{') parts.push('{');
      else if (token === '}}') parts.push('}');
      else if (token === '{' || token === '}')
        throw new TemplateError(`a "${token}" stands alone`, `write ${token}${token} for a brace`);
      else parts.push(token);
    }
    return new RequestTemplate(parts);
  }

  /** The text for a request. A key that its data do not have gives nothing; see `asPythonText` for what is not a text. */
  render(request: RequestInfo): string {
    return this.parts
      .map((part) => (typeof part === 'string' ? part : textAt(part.field(request), part.keys)))
      .join('');
  }
}

function parsePlaceholder(placeholder: string): Part {
  const match = PLACEHOLDER.exec(placeholder);
  const [, name = '', path = ''] = match ?? [];
  const known = Object.keys(FIELDS);
  if (match === null) {
    throw new TemplateError(
      `{${placeholder}} is no placeholder`,
      `write {request.id} or {request.requestor_data[key]}; {{ and }} for braces`,
    );
  }
  const field = Object.hasOwn(FIELDS, name) ? FIELDS[name] : undefined;
  if (field === undefined) throw new TemplateError(`there is no request.${name}`, `there are: ${known.join(', ')}`);
  return { field, keys: [...path.matchAll(/\[([^[\]]+)\]/g)].map(([, key = '']) => key) };
}

function textAt(value: JsonValue, keys: readonly string[]): string {
  let found = value;
  for (const key of keys) {
    const next = within(found, key);
    if (next === undefined) return '';
    found = next;
  }
  return typeof found === 'string' ? found : asPythonText(found);
}

function within(value: JsonValue, key: string): JsonValue | undefined {
  if (isJsonObject(value)) return Object.hasOwn(value, key) ? value[key] : undefined;
  return isList(value) && /^\d+$/.test(key) ? value[Number(key)] : undefined;
}

/** Values that are no texts look as they do in an existing Nodepool, whose readers know them so: `None`, `True`, `['a', 'b']`. */
function asPythonText(value: JsonValue): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return quoted(value);
  if (isList(value)) return `[${value.map(asPythonText).join(', ')}]`;
  if (!isJsonObject(value)) return '';
  return `{${Object.entries(value)
    .map(([key, item]) => `${quoted(key)}: ${asPythonText(item)}`)
    .join(', ')}}`;
}

function quoted(text: string): string {
  const escaped = text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
  return escaped.includes("'") && !escaped.includes('"') ? `"${escaped}"` : `'${escaped.replaceAll("'", "\\'")}'`;
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}
