/** Formats of placeholders. The expected results are those of CPython 3.11 for `format(value, format)`. */

import { describe, expect, it } from '@jest/globals';
import { RequestTemplate, TemplateError, type JsonValue, type RequestInfo } from '../../src/index.js';

function rendered(template: string, change: Partial<RequestInfo> = {}): string {
  return RequestTemplate.parse(template).render({
    id: '200-0000000042',
    labels: ['small'],
    requestor: 'zuul',
    requestorData: null,
    relativePriority: 3,
    eventId: 'e1',
    createdTime: 1700000000.25,
    tenantName: null,
    ...change,
  });
}

describe('a placeholder with a format', () => {
  it.each([
    ['{request.created_time:.0f}', '1700000000'],
    ['{request.created_time:f}', '1700000000.250000'],
    ['{request.relative_priority:0>4}', '0003'],
    ['{request.relative_priority:.1f}', '3.0'],
    ['{request.id:.3}', '200'],
    ['{request.id!s:>16}', '  200-0000000042'],
    ['{request.requestor!r}', "'zuul'"],
    ['{request.labels!s:>12}', "   ['small']"],
    ['{request.labels[0]:-<7}|', 'small--|'],
    ['{request.tenant_name!s:6}|', 'None  |'],
    ['{request.id:}', '200-0000000042'],
  ])('%s renders %j', (template, text) => {
    expect(rendered(template)).toBe(text);
  });

  it.each<[JsonValue, string, string]>([
    [1700000000.5, '>15.1f', '   1700000000.5'],
    [99999.95, '.1f', '99999.9'],
    [9.995, '.2f', '9.99'],
    [1700000000.5, '12', '1700000000.5'],
    [1e-5, '>8', '   1e-05'],
    [3, '*^9', '****3****'],
    ['zuul', '>8', '    zuul'],
    ['zuul', '^9', '  zuul   '],
    ['zuul', '*<6', 'zuul**'],
    ['zuul', '.2', 'zu'],
    ['zuul', '5.2s', 'zu   '],
    ['größe', '>7', '  größe'],
    ['zuul', 's', 'zuul'],
    ['', '->3', '---'],
  ])('renders %j with format %j as Python does: %j', (value, format, text) => {
    expect(rendered(`{request.requestor_data[v]:${format}}`, { requestorData: { v: value } })).toBe(text);
  });

  it.each<[JsonValue, string, string]>([
    ['text', '.1f', 'text'],
    [1.5, '.2', '1.5'],
    [3, 's', '3'],
    [null, '>9', 'None'],
    [['a'], '>9', "['a']"],
    [true, '', 'True'],
  ])('that does not apply to the value %j of a request renders the value without it', (value, format, text) => {
    expect(rendered(`{request.requestor_data[v]:${format}}`, { requestorData: { v: value } })).toBe(text);
  });

  it.each([
    ['{request.id:.1f}', '"f" applies only to numbers, and the value is a text'],
    ['{request.created_time:s}', '"s" applies only to texts, and the value is a number'],
    ['{request.created_time:.2}', '".2" applies only to texts; write .2f'],
    ['{request.labels:>10}', 'a list takes no format'],
    ['{request.id:2000}', 'the width is more than 1000'],
    ['{request.created_time:.200f}', 'the precision is more than 100'],
    ['{request.created_time:%Y-%m}', '"%Y-%m" is not supported; use a width'],
    ['{request.created_time:e}', '"e" is not supported'],
    ['{request.created_time:,.0f}', '",.0f" is not supported'],
    ['{request.relative_priority:04d}', '"04d" is not supported'],
    ['{request.relative_priority:+}', '"+" is not supported'],
    ['{request.relative_priority:x}', '"x" is not supported'],
  ])('%s is rejected: %s', (template, reason) => {
    const parse = (): unknown => RequestTemplate.parse(template);
    expect(parse).toThrow(TemplateError);
    expect(parse).toThrow(reason);
    expect(parse).toThrow(template.slice(1, -1));
  });

  it('with nested braces is rejected', () => {
    expect(() => RequestTemplate.parse('{request.id:{request.relative_priority}}')).toThrow(TemplateError);
  });
});
