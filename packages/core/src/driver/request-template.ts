/**
 * Configuration texts that contain data of a request, e.g. `job {request.requestor_data[job]}`, in the syntax of
 * existing files. Templates are validated when the configuration is read, so that rendering never fails for any
 * request.
 */

import { isJsonObject, type JsonObject, type JsonValue } from '../model/json.js';
import type { RequestInfo } from './api.js';
import type { ProviderConfigContext } from './provider-config.js';
import { textsAt } from './section.js';
import { ValueFormat, pythonNumber, type ValueKind } from './request-template-format.js';

/** A problem in a template, e.g. `there is no request.nme`. */
export class TemplateError extends Error {
  constructor(
    message: string,
    /** Suggested replacement, if there is one. */
    readonly hint?: string,
  ) {
    super(message);
    this.name = 'TemplateError';
  }
}

interface Field {
  readonly kind: ValueKind;
  readonly of: (request: RequestInfo) => JsonValue;
}

/** Fields of a request that a template can use, by the names in existing files. */
const FIELDS: Readonly<Record<string, Field>> = {
  id: { kind: 'text', of: (request) => request.id },
  labels: { kind: 'list', of: (request) => request.labels },
  requestor: { kind: 'text', of: (request) => request.requestor },
  requestor_data: { kind: 'any', of: (request) => request.requestorData },
  relative_priority: { kind: 'number', of: (request) => request.relativePriority },
  event_id: { kind: 'text', of: (request) => request.eventId },
  created_time: { kind: 'number', of: (request) => request.createdTime },
  tenant_name: { kind: 'text', of: (request) => request.tenantName },
};

interface Placeholder {
  readonly field: (request: RequestInfo) => JsonValue;
  readonly keys: readonly string[];
  /** `!s` formats as text; `!r` formats as Python source, with texts in quotes. */
  readonly conversion: string | undefined;
  readonly format: ValueFormat | undefined;
}

type Part = string | Placeholder;

/** A piece of text, an escaped brace, a placeholder, or a brace that is none of these. */
const TOKEN = /[^{}]+|\{\{|\}\}|\{([^{}]*)\}|[{}]/g;
const PLACEHOLDER = /^request\.(\w+)((?:\[[^[\]]+\])*)(?:!([rs]))?(?::(.*))?$/s;

/** A text with placeholders. Immutable. */
export class RequestTemplate {
  private constructor(private readonly parts: readonly Part[]) {}

  /**
   * Parses a template. Placeholders are `{request.<field>}` and, for structures, `{request.<field>[key][key]}`, both
   * optionally with a width or a number of digits, e.g. `{request.created_time:.0f}`; `{{` and `}}` are literal braces.
   * Throws `TemplateError` if the template is invalid.
   */
  static parse(text: string): RequestTemplate {
    const parts: Part[] = [];
    for (const [token, placeholder] of text.matchAll(TOKEN)) {
      if (placeholder !== undefined) parts.push(parsePlaceholder(placeholder));
      else if (token === '{{') parts.push('{');
      else if (token === '}}') parts.push('}');
      else if (token === '{' || token === '}')
        throw new TemplateError(`unmatched "${token}"`, `write ${token}${token} for a brace`);
      else parts.push(token);
    }
    return new RequestTemplate(parts);
  }

  /**
   * Returns the text for a request. A key that the data lack yields an empty text, and a value that does not match its
   * format is shown without it. Values other than texts appear as in `asPythonText`.
   */
  render(request: RequestInfo): string {
    return this.parts.map((part) => (typeof part === 'string' ? part : fill(part, request))).join('');
  }
}

function parsePlaceholder(placeholder: string): Part {
  const match = PLACEHOLDER.exec(placeholder);
  const [, name = '', path = '', conversion, format] = match ?? [];
  const known = Object.keys(FIELDS);
  if (match === null) {
    throw new TemplateError(
      `{${placeholder}} is not a valid placeholder`,
      `write {request.id} or {request.requestor_data[key]}; {{ and }} for braces`,
    );
  }
  const field = Object.hasOwn(FIELDS, name) ? FIELDS[name] : undefined;
  if (field === undefined) throw new TemplateError(`there is no request.${name}`, `there are: ${known.join(', ')}`);
  const keys = [...path.matchAll(/\[([^[\]]+)\]/g)].map(([, key = '']) => key);
  const kind = conversion === undefined ? kindAt(field.kind, keys) : 'text';
  return { field: field.of, keys, conversion, format: parseFormat(placeholder, format, kind) };
}

function kindAt(kind: ValueKind, keys: readonly string[]): ValueKind {
  if (keys.length === 0) return kind;
  return kind === 'list' ? 'text' : 'any';
}

function parseFormat(placeholder: string, text: string | undefined, kind: ValueKind): ValueFormat | undefined {
  if (text === undefined || text === '') return undefined;
  const format = ValueFormat.parse(text, kind);
  if (format instanceof ValueFormat) return format;
  throw new TemplateError(
    `the format of {${placeholder}} cannot be used: ${format.reason}`,
    'write e.g. {request.created_time:.0f} or {request.id:>20}',
  );
}

function fill({ field, keys, conversion, format }: Placeholder, request: RequestInfo): string {
  let found = field(request);
  for (const key of keys) {
    const next = within(found, key);
    if (next === undefined) return '';
    found = next;
  }
  const asText = conversion === 'r' || (conversion === 's' && typeof found !== 'string');
  const value = asText ? asPythonText(found) : found;
  const isFormatted = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
  const formatted = isFormatted ? format?.apply(value) : undefined;
  return formatted ?? (typeof value === 'string' ? value : asPythonText(value));
}

function within(value: JsonValue, key: string): JsonValue | undefined {
  if (isJsonObject(value)) return Object.hasOwn(value, key) ? value[key] : undefined;
  return isList(value) && /^\d+$/.test(key) ? value[Number(key)] : undefined;
}

/** Formats a value that is not a text as the Python Nodepool does, e.g. `None`, `True`, `['a', 'b']`. */
function asPythonText(value: JsonValue): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'number') return pythonNumber(value);
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

/** Reads the templates of a mapping in a section. Reports invalid templates to `context`, at positions below `path`. */
export function requestTemplatesAt(
  section: JsonObject,
  key: string,
  path: readonly (string | number)[],
  context: Pick<ProviderConfigContext, 'problem'>,
): ReadonlyMap<string, RequestTemplate> {
  const parsed = new Map<string, RequestTemplate>();
  for (const [name, text] of Object.entries(textsAt(section, key))) {
    try {
      parsed.set(name, RequestTemplate.parse(text));
    } catch (error) {
      if (!(error instanceof TemplateError)) throw error;
      context.problem([...path, key, name], {
        expected: 'a text with valid placeholders',
        hint: error.hint === undefined ? error.message : `${error.message}; ${error.hint}`,
      });
    }
  }
  return parsed;
}
