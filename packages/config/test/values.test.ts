/** The values that drivers receive from the file, and the messages for values that their schemas refuse. */

import { describe, expect, it } from '@jest/globals';
import { formatProblem } from '@nodepool/config';
import {
  providerSchema,
  type Driver,
  type JsonSchema,
  type JsonValue,
  type ProviderConfigContext,
} from '@nodepool/core';
import { configOf, loadText, problemsOf } from './files.js';
import { openstack, only } from './stand-in-drivers.js';

function driverWith(value: JsonSchema): Driver {
  const defaults = { bootTimeoutSeconds: 60, rateUnit: 'calls-per-second' } as const;
  return { ...openstack, schema: providerSchema({ defaults, provider: { properties: { value } } }) };
}

function file(value: string): string {
  return `providers:\n  - name: p\n    value: ${value}\n`;
}

async function valueOf(text: string): Promise<JsonValue | undefined> {
  const config = await configOf(file(text), { discoverDriver: only(driverWith({})) });
  return config.providers.get('p')?.section['value'];
}

async function messagesOf(schema: JsonSchema, text: string): Promise<string[]> {
  const problems = await problemsOf(file(text), { discoverDriver: only(driverWith(schema)) });
  return problems.map((problem) => formatProblem({ ...problem, file: 'f' }));
}

describe('an unquoted value', () => {
  it.each<[string, JsonValue]>([
    ['yes', true],
    ['Off', false],
    ['y', 'y'],
    ['yEs', 'yEs'],
    ['~', null],
    ['', null],
    ['1_000', 1000],
    ['-0x1F', -31],
    ['0b101', 5],
    ['017', 15],
    ['08', '08'],
    ['0o7', '0o7'],
    ['1:30', 90],
    ['1:99', '1:99'],
    ['.5', 0.5],
    ['-1.', -1],
    ['1e3', '1e3'],
    ['1.0e+3', 1000],
    ['2024-01-01', '2024-01-01'],
    ['12345678901234567890', '12345678901234567890'],
    ['"yes"', 'yes'],
    ["'1'", '1'],
    ['!!str 1', '1'],
    ['!!int 1', 1],
    ['!!float 1.5', 1.5],
    ['!!bool no', false],
  ])('%s has the value that PyYAML reads', async (text, value) => {
    expect(await valueOf(text)).toBe(value);
  });
});

describe('a rejected value', () => {
  const stringOrMapping: JsonSchema = {
    oneOf: [
      { type: 'string' },
      { type: 'object', properties: { name: { type: 'string' } }, required: ['name'], additionalProperties: false },
    ],
  };

  it('is explained by its content, when only one kind of value resembles it', async () => {
    expect(await messagesOf(stringOrMapping, '{nam: x}')).toEqual([
      'f:3:12: providers[0].value.name: expected a string, found nothing; the key is required',
      'f:3:13: providers[0].value.nam: expected the key name, found an unknown key; did you mean "name"?',
    ]);
  });

  it('is explained by its kind, when no allowed kind resembles it', async () => {
    expect(await messagesOf(stringOrMapping, '[1]')).toEqual([
      'f:3:12: providers[0].value: expected a string or a mapping, found a list of 1',
    ]);
  });

  it.each<[JsonSchema, string, string]>([
    [{ type: 'integer', minimum: 3 }, '2', 'a whole number of at least 3, found 2'],
    [{ type: 'number', maximum: 3 }, '3.5', 'a number of at most 3, found 3.5'],
    [{ type: 'number', maximum: 3, $comment: 'they are few' }, '4', 'a number of at most 3, found 4; they are few'],
    [{ type: 'number', exclusiveMinimum: 0 }, '0', 'a number of more than 0, found 0'],
    [{ type: 'number', exclusiveMaximum: 1 }, '1', 'a number of less than 1, found 1'],
    [{ type: 'number' }, '.inf', 'a number, found Infinity'],
    [{ type: 'string', minLength: 1 }, "''", 'a string that is not empty, found ""'],
    [{ type: 'string', minLength: 3 }, 'ab', 'a string of at least 3 characters, found "ab"'],
    [{ type: 'string', pattern: '^a' }, 'b', 'a string that matches ^a, found "b"'],
    [{ type: 'string' }, 'true', 'a string, found true; put it in quotes'],
    [{ type: 'boolean' }, '"yes"', 'true or false, found "yes"; write it without quotes'],
    [{ type: 'array', minItems: 1 }, '[]', 'a list of at least 1, found an empty list'],
    [{ type: 'array', items: {}, uniqueItems: true }, '[1, 1]', 'a list without repetitions, found a list of 2'],
    [{ type: 'array', maxItems: 1 }, '[1, 1]', 'a list of at most 1, found a list of 2'],
    [{ type: 'string', maxLength: 3 }, 'abcd', 'a string of at most 3 characters, found "abcd"'],
    [{ type: 'object', minProperties: 1 }, '{}', 'a mapping that is not empty, found an empty mapping'],
    [{ enum: ['a', 'b', 1] }, 'c', '"a", "b" or 1, found "c"'],
    [{ const: 'a' }, 'b', '"a", found "b"'],
    [{ type: ['integer', 'string', 'null'] }, '{}', 'a whole number or a string, found an empty mapping'],
    [{ anyOf: [{ const: 1 }, { type: 'string', maxLength: 1 }] }, '2', '1 or a string, found 2'],
  ])('is reported for %j with the expectation', async (schema, text, expected) => {
    expect(await messagesOf(schema, text)).toEqual([`f:3:12: providers[0].value: expected ${expected}`]);
  });

  it('is truncated when it is long, and its key quoted when it is unusual', async () => {
    const schema: JsonSchema = { type: 'object', additionalProperties: { type: 'integer' } };
    const [expected] = await messagesOf(schema, `{"a b": ${'x'.repeat(100)}}`);
    expect(expected).toBe(`f:3:20: providers[0].value["a b"]: expected a whole number, found "${'x'.repeat(60)}…"`);
  });
});

describe('a problem that a driver reports', () => {
  const messages = async (report: (context: ProviderConfigContext) => void): Promise<string[]> => {
    const getProviderConfig: Driver['getProviderConfig'] = (section, context) => {
      report(context);
      return openstack.getProviderConfig(section, context);
    };
    const discoverDriver = only({ ...driverWith({}), getProviderConfig });
    const result = await loadText(file('{a: 1}'), { discoverDriver });
    const problems = [...(result.ok ? [] : result.problems), ...result.warnings];
    return problems.map((problem) => formatProblem({ ...problem, file: 'f' }));
  };

  it('says nothing about the kind of a value with parts, which is right', async () => {
    expect(await messages(({ problem }) => problem(['value'], { expected: '"b" to be set' }))).toEqual([
      'f:3:12: providers[0].value: expected "b" to be set',
    ]);
    expect(await messages(({ problem }) => problem(['name'], { expected: 'a longer name' }))).toEqual([
      'f:2:11: providers[0].name: expected a longer name, found "p"',
    ]);
  });

  it('is not lost beside another one of the same value', async () => {
    const hints = ['the tag a is too long', 'the tag b is too long'];
    const report = ({ problem }: ProviderConfigContext): void =>
      hints.forEach((hint) => problem(['value'], { expected: 'shorter tags', hint }));
    expect(await messages(report)).toEqual(
      hints.map((hint) => `f:3:12: providers[0].value: expected shorter tags; ${hint}`),
    );
  });

  it('gives the reason why the provider cannot be served', async () => {
    const reason = 'there is no kubeconfig file at /k; name the file with KUBECONFIG';
    expect(await messages((context) => context.unserved?.(['context'], reason))).toEqual([
      `f:2:5: providers[0].context: expected a provider that can be served; ${reason}; this provider is not served until then`,
    ]);
  });
});
