/** Templates over requests: results, rejected templates, and rendering of arbitrary requests without errors. */

import { describe, expect, it } from '@jest/globals';
import {
  requestTemplatesAt,
  RequestTemplate,
  TemplateError,
  type JsonValue,
  type RequestInfo,
} from '../../src/index.js';

function request(change: Partial<RequestInfo> = {}): RequestInfo {
  return {
    id: '200-0000000042',
    labels: ['small', 'large'],
    requestor: 'zuul',
    requestorData: { job: 'unit', build: { uuid: 'abc' }, list: ['x', 7] },
    relativePriority: 3,
    eventId: 'e1',
    createdTime: 1700000000.5,
    tenantName: 'acme',
    ...change,
  };
}

describe('a template over a request', () => {
  it.each([
    ['no placeholder', 'no placeholder'],
    ['Tenant is {request.tenant_name}', 'Tenant is acme'],
    ['{request.id}/{request.requestor}/{request.event_id}', '200-0000000042/zuul/e1'],
    ['{request.relative_priority} at {request.created_time}', '3 at 1700000000.5'],
    ['{request.labels}', "['small', 'large']"],
    ['{request.labels[1]}', 'large'],
    ['{request.requestor_data[job]}', 'unit'],
    ['{request.requestor_data[build][uuid]}', 'abc'],
    ['{request.requestor_data[build]}', "{'uuid': 'abc'}"],
    ['{request.requestor_data[list]}', "['x', 7]"],
    ['{{request.id}}', '{request.id}'],
    ['', ''],
  ])('%j renders %j', (template, text) => {
    expect(RequestTemplate.parse(template).render(request())).toBe(text);
  });

  it.each([
    ['{request.nme}', 'no request.nme', 'tenant_name'],
    ['{request.__class__}', 'no request.__class__', 'id'],
    ['{request.constructor}', 'no request.constructor', 'id'],
    ['{node.id}', 'not a valid placeholder', 'request.id'],
    ['{request.requestor_data.job}', 'not a valid placeholder', 'requestor_data[key]'],
    ['{}', 'not a valid placeholder', '{{'],
    ['50 } 60', 'unmatched', '}}'],
    ['{request.id', 'unmatched', '{{'],
  ])('%j is rejected with the reason and a remedy', (template, reason, remedy) => {
    let failure: unknown;
    try {
      RequestTemplate.parse(template);
    } catch (error) {
      failure = error;
    }
    expect(failure).toBeInstanceOf(TemplateError);
    expect(failure).toMatchObject({
      message: expect.stringContaining(reason),
      hint: expect.stringContaining(remedy),
    });
  });

  it('is reported with its place, the reason and the remedy, if it is invalid', () => {
    const problems: unknown[] = [];
    const problem = (path: readonly (string | number)[], text: object): void => void problems.push({ path, ...text });
    requestTemplatesAt({ tags: { a: '50 } 60', b: 'x' } }, 'tags', ['pools', 0], { problem });
    const hint = 'unmatched "}"; write }} for a brace';
    expect(problems).toEqual([{ path: ['pools', 0, 'tags', 'a'], expected: 'a text with valid placeholders', hint }]);
  });

  it.each<[JsonValue, string]>([
    [null, ''],
    ['text', ''],
    [{ job: null }, 'None'],
    [{ job: true }, 'True'],
    [{ job: "it's" }, "it's"],
    [{ job: ["it's", 'a\nb', '\'"'] }, `["it's", 'a\\nb', '\\'"']`],
    [{ job: '{request.id}' }, '{request.id}'],
    [['job'], ''],
  ])('with the data %j renders %j', (requestorData, text) => {
    expect(RequestTemplate.parse('{request.requestor_data[job]}').render(request({ requestorData }))).toBe(text);
  });

  it('reads only keys of the data, no inherited properties', () => {
    const template = RequestTemplate.parse('{request.requestor_data[constructor]}{request.requestor_data[__proto__]}');
    expect(template.render(request())).toBe('');
  });
});
