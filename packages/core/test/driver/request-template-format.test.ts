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
    createdTime: 1700000000.5,
    tenantName: null,
    ...change,
  });
}

describe('a placeholder with a format', () => {
  it.each([
    ['{request.created_time:.0f}', '1700000000'],
    ['{request.created_time:e}', '1.700000e+09'],
    ['{request.relative_priority:04d}', '0003'],
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
    [1700000000.5, '.0f', '1700000000'],
    [1700000001.5, '.0f', '1700000002'],
    [1700000000.5, '>15.1f', '   1700000000.5'],
    [0.5, '.0f', '0'],
    [2.5, '.0e', '2e+00'],
    [1e23, '.3e', '1.000e+23'],
    [99999.95, '.1f', '99999.9'],
    [9.995, '.2f', '9.99'],
    [3, '05d', '00003'],
    [-98765, '010,', '-0,098,765'],
    [1234567890, ',d', '1,234,567,890'],
    [1234567890, '_', '1_234_567_890'],
    [3, '+d', '+3'],
    [3, ' d', ' 3'],
    [255, 'x', 'ff'],
    [255, '#06x', '0x00ff'],
    [255, 'X', 'FF'],
    [5, '08b', '00000101'],
    [8, 'o', '10'],
    [0.256, '.1%', '25.6%'],
    [0.5, '%', '50.000000%'],
    [1234567, 'g', '1.23457e+06'],
    [123456, 'g', '123456'],
    [1e-5, 'g', '1e-05'],
    [0.1, '.3', '0.1'],
    [1700000000.5, '.3', '1.7e+09'],
    [1700000000.5, '12', '1700000000.5'],
    [1e-5, '>8', '   1e-05'],
    [-0.5, '.0f', '-0'],
    [-0.5, '=+8.1f', '-    0.5'],
    [3, '*^9', '****3****'],
    ['zuul', '>8', '    zuul'],
    ['zuul', '^9', '  zuul   '],
    ['zuul', '*<6', 'zuul**'],
    ['zuul', '.2', 'zu'],
    ['zuul', '5.2s', 'zu   '],
    ['zuul', '06', 'zuul00'],
    ['größe', '>7', '  größe'],
    ['zuul', 's', 'zuul'],
    ['', '->3', '---'],
  ])('renders %j with format %j as Python does: %j', (value, format, text) => {
    expect(rendered(`{request.requestor_data[v]:${format}}`, { requestorData: { v: value } })).toBe(text);
  });

  it.each<[JsonValue, string, string]>([
    ['text', 'd', 'text'],
    [1.5, 'x', '1.5'],
    [3, 's', '3'],
    [null, '>9', 'None'],
    [['a'], '>9', "['a']"],
    [true, '', 'True'],
  ])('that does not apply to the value %j of a request renders the value without it', (value, format, text) => {
    expect(rendered(`{request.requestor_data[v]:${format}}`, { requestorData: { v: value } })).toBe(text);
  });

  it.each([
    ['{request.id:d}', '"d" applies only to numbers, and the value is a text'],
    ['{request.created_time:d}', '"d" applies only to whole numbers, and the value may have a fraction; write .0f'],
    ['{request.created_time:s}', '"s" applies only to texts, and the value is a number'],
    ['{request.relative_priority:.2d}', 'a whole number takes no precision'],
    ['{request.relative_priority:.2}', 'a whole number takes no precision'],
    ['{request.labels:>10}', 'a list takes no format'],
    ['{request.id:+}', 'signs, "=", "#" and grouping apply only to numbers'],
    ['{request.id:=9}', 'signs, "=", "#" and grouping apply only to numbers'],
    ['{request.created_time:#f}', '"#" applies only to x, X, o and b'],
    ['{request.relative_priority:,x}', '"," does not apply to "x"'],
    ['{request.relative_priority:n}', '"n" is not a supported type'],
    ['{request.id:2000}', 'the width is more than 1000'],
    ['{request.created_time:.200f}', 'the precision is more than 100'],
    ['{request.created_time:%Y-%m}', '"%Y-%m" is not a supported format of Python'],
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
