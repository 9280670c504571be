/**
 * What Google has published of its APIs, as its client libraries ship it: the types of all messages and parameters, in
 * their declaration files, and the paths, in their code. Requests and answers of the simulation are held to that.
 */

import { readFileSync } from 'node:fs';

/** A type, as far as JSON can be checked against it. */
type Type =
  | { readonly kind: 'any' }
  | { readonly kind: 'scalar'; readonly name: 'string' | 'number' | 'boolean' }
  | { readonly kind: 'message'; readonly name: string }
  | { readonly kind: 'list'; readonly of: Type }
  | { readonly kind: 'map'; readonly of: Type }
  | { readonly kind: 'object'; readonly fields: ReadonlyMap<string, Type> };

export class Definitions {
  private readonly text: string;
  private readonly code: string;
  private readonly known = new Map<string, ReadonlyMap<string, Type>>();

  /** `file`: the library's file without its ending, e.g. `@googleapis/compute/build/v1`. */
  constructor(file: string) {
    this.text = readFileSync(require.resolve(`${file}.d.ts`), 'utf8');
    this.code = readFileSync(require.resolve(`${file}.js`), 'utf8');
  }

  /** Whether the library calls this path, e.g. `/compute/v1/projects/{project}/zones/{zone}/instances`. */
  hasPath(path: string): boolean {
    return this.code.includes(`'${path}'`);
  }

  /** What is wrong with a message, e.g. `Instance.disks[0].bot is not known`; undefined when nothing is. */
  problemWith(value: unknown, message: string): string | undefined {
    return this.problem(value, { kind: 'message', name: `Schema$${message}` }, message);
  }

  /** Names of the parameters of a method, e.g. `Instances$Insert`. */
  parametersOf(method: string): ReadonlySet<string> {
    return new Set(this.interfaceOf(`Params$Resource$${method}`).keys());
  }

  private problem(value: unknown, type: Type, at: string): string | undefined {
    if (value === undefined || value === null || type.kind === 'any') return undefined;
    if (type.kind === 'scalar') {
      return typeof value === type.name ? undefined : `${at} is to be a ${type.name}, not ${JSON.stringify(value)}`;
    }
    if (type.kind === 'list') {
      if (!Array.isArray(value)) return `${at} is to be a list`;
      return firstOf(value.map((item: unknown, index) => () => this.problem(item, type.of, `${at}[${index}]`)));
    }
    if (typeof value !== 'object' || Array.isArray(value)) return `${at} is to be an object`;
    if (type.kind === 'map') {
      return firstOf(
        Object.entries(value).map(
          ([key, item]) =>
            () =>
              this.problem(item, type.of, `${at}.${key}`),
        ),
      );
    }
    const fields = type.kind === 'message' ? this.interfaceOf(type.name) : type.fields;
    return firstOf(
      Object.entries(value).map(([key, item]) => () => {
        const field = fields.get(key);
        return field === undefined ? `${at}.${key} is not known` : this.problem(item, field, `${at}.${key}`);
      }),
    );
  }

  private interfaceOf(name: string): ReadonlyMap<string, Type> {
    const known = this.known.get(name);
    if (known !== undefined) return known;
    const begin = new RegExp(`interface ${name.replaceAll('$', '\\$')} (extends \\w+ )?\\{`).exec(this.text);
    if (begin === null) throw new Error(`${name} is not in the published definitions`);
    const start = begin.index + begin[0].length;
    const end = this.text.indexOf('\n    }\n', start);
    const body = this.text.slice(start, end).replace(/\/\*\*[\s\S]*?\*\//g, ' ');
    const fields = new TypeReader(`{${body}}`).fields();
    this.known.set(name, fields);
    return fields;
  }
}

function firstOf(checks: readonly (() => string | undefined)[]): string | undefined {
  for (const check of checks) {
    const problem = check();
    if (problem !== undefined) return problem;
  }
  return undefined;
}

const TOKEN = /[A-Za-z_][\w$.]*|'[^']*'|"[^"]*"|[{}[\]<>:;?|]/g;

/** Reads the few kinds of types that the declaration files use. */
class TypeReader {
  private readonly tokens: readonly string[];
  private at = 0;

  constructor(text: string) {
    this.tokens = text.match(TOKEN) ?? [];
  }

  /** `{ name?: type; … }` */
  fields(): ReadonlyMap<string, Type> {
    const fields = new Map<string, Type>();
    this.expect('{');
    while (this.peek() !== '}') {
      const name = this.next().replace(/['"]/g, '');
      this.skip('?');
      this.expect(':');
      fields.set(name, this.type());
      this.skip(';');
    }
    this.expect('}');
    return fields;
  }

  private type(): Type {
    let type = this.single();
    while (this.skip('|')) {
      const other = this.single();
      if (type.kind === 'any') type = other;
    }
    return type;
  }

  private single(): Type {
    let type = this.primary();
    while (this.skip('[')) {
      this.expect(']');
      type = { kind: 'list', of: type };
    }
    return type;
  }

  private primary(): Type {
    if (this.peek() === '{') return this.object();
    const word = this.next();
    if (word === 'string' || word === 'number' || word === 'boolean') return { kind: 'scalar', name: word };
    if (word.startsWith('Schema$')) return { kind: 'message', name: word };
    if (word !== 'Array') return { kind: 'any' };
    this.expect('<');
    const of = this.type();
    this.expect('>');
    return { kind: 'list', of };
  }

  private object(): Type {
    if (this.tokens[this.at + 1] !== '[') return { kind: 'object', fields: this.fields() };
    for (const token of ['{', '[', 'key', ':', 'string', ']', ':']) this.expect(token);
    const of = this.type();
    this.skip(';');
    this.expect('}');
    return { kind: 'map', of };
  }

  private peek(): string | undefined {
    return this.tokens[this.at];
  }

  private next(): string {
    const token = this.tokens[this.at];
    if (token === undefined) throw new Error('a declaration ends too early');
    this.at += 1;
    return token;
  }

  private skip(token: string): boolean {
    if (this.peek() !== token) return false;
    this.at += 1;
    return true;
  }

  private expect(token: string): void {
    const found = this.next();
    if (found !== token) throw new Error(`a declaration has "${found}" where "${token}" was expected`);
  }
}
