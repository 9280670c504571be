/** Context of a test case: clients of several projects, ids of the sample cloud, and cleanup. */

import { strict as assert } from 'node:assert';
import { randomUUID } from 'node:crypto';
import type { JsonObject } from '@nodepool/core';
import type { ServiceName } from '../services.js';
import { ApiClient, textOf, type ApiAnswer } from './api-client.js';

/** A behaviour of the APIs that the driver relies on. */
export interface ApiCase {
  readonly service: ServiceName;
  /** Description of the behaviour. */
  readonly name: string;
  /** Rejects if the service behaves differently. */
  run(bed: TestBed): Promise<void>;
}

/** Returns a constructor of cases for a service. */
export function casesOf(service: ServiceName): (name: string, run: ApiCase['run']) => ApiCase {
  return (name, run) => ({ service, name, run });
}

export interface ServerOptions {
  readonly metadata?: JsonObject;
  readonly flavor?: string;
  /** Additional attributes; `undefined` removes one. */
  readonly more?: Readonly<Record<string, unknown>>;
  readonly client?: ApiClient;
  readonly microversion?: string;
}

export class TestBed {
  private readonly cleanups: (() => Promise<unknown>)[] = [];

  private constructor(
    readonly cloudsYaml: string,
    /** Client of a project with a large quota. */
    readonly demo: ApiClient,
    /** Client of another project with a very small quota. */
    readonly limited: ApiClient,
    readonly imageId: string,
    private readonly flavors: ReadonlyMap<string, string>,
    private readonly privateNetworks: ReadonlyMap<ApiClient, string>,
    readonly publicNetworkId: string,
  ) {}

  static async open(cloudsYaml: string): Promise<TestBed> {
    const [demo, limited] = await Promise.all([
      ApiClient.logIn(cloudsYaml, 'real'),
      ApiClient.logIn(cloudsYaml, 'limited'),
    ]);
    const images = (await demo.get('image', '/images?name=test-image')).list('images');
    const flavors = (await demo.get('compute', '/flavors')).list('flavors');
    return new TestBed(
      cloudsYaml,
      demo,
      limited,
      textOf(images[0]?.['id']),
      new Map(flavors.map(({ id, name }) => [textOf(name ?? ''), textOf(id ?? '')])),
      new Map([
        [demo, await networkId(demo, 'private')],
        [limited, await networkId(limited, 'private')],
      ]),
      await networkId(demo, 'public'),
    );
  }

  flavorId(name: string): string {
    const id = this.flavors.get(name);
    if (id === undefined) throw new Error(`there is no flavor ${name}`);
    return id;
  }

  networkId(client = this.demo): string {
    return this.privateNetworks.get(client) ?? '';
  }

  /** Requests a server, which is deleted after the case. */
  async createServer(name: string, options: ServerOptions = {}): Promise<ApiAnswer> {
    const { client = this.demo, microversion } = options;
    const server = {
      name,
      flavorRef: this.flavorId(options.flavor ?? 'm1.tiny'),
      imageRef: this.imageId,
      networks: [{ uuid: this.networkId(client) }],
      metadata: options.metadata ?? {},
      ...options.more,
    };
    const headers = microversion === undefined ? {} : { 'OpenStack-API-Version': `compute ${microversion}` };
    const answer = await client.post('compute', '/servers', { server }, { headers });
    if (answer.status === 202) {
      const id = textOf(answer.member('server')['id']);
      this.afterwards(() => this.removeServer(id, client));
    }
    return answer;
  }

  /** Creates a server and waits until it is built. */
  async server(name: string, options: ServerOptions = {}): Promise<JsonObject> {
    const { client = this.demo } = options;
    const answer = await this.createServer(name, options);
    assert.equal(answer.status, 202, answer.text);
    const id = textOf(answer.member('server')['id']);
    const built = await client.until(
      'compute',
      `/servers/${id}`,
      (shown) => shown.status === 200 && shown.member('server')['status'] !== 'BUILD',
    );
    return built.member('server');
  }

  /** Deletes a server and waits until it no longer exists. Repeats a failed deletion. */
  async removeServer(id: string, client = this.demo): Promise<void> {
    await client.until('compute', `/servers/${id}`, async (shown) => {
      if (shown.status === 404) return true;
      const { status, 'OS-EXT-STS:task_state': task } = shown.member('server');
      if (task !== 'deleting' || status === 'ERROR') await client.delete('compute', `/servers/${id}`);
      return false;
    });
  }

  /** Waits until a path returns 404. */
  async gone(service: ServiceName, path: string, client = this.demo): Promise<void> {
    await client.until(service, path, ({ status }) => status === 404);
  }

  /** Registers a cleanup to run after the case, also if it fails, in reverse order. */
  afterwards(work: () => Promise<unknown>): void {
    this.cleanups.unshift(work);
  }

  async tidy(): Promise<void> {
    for (const work of this.cleanups.splice(0)) await work();
  }
}

/** Returns an id of no resource. */
export function noId(): string {
  return randomUUID();
}

/** Asserts that the answer is exactly this error. */
export function refused(answer: ApiAnswer, status: number, body: unknown): void {
  assert.equal(answer.status, status, answer.text);
  assert.deepEqual(answer.json(), body);
}

/** Asserts that the answer is an HTML page with this message. */
export function refusedInHtml(answer: ApiAnswer, status: number, message: string): void {
  assert.equal(answer.status, status, answer.text);
  assert.match(answer.headers.get('content-type') ?? '', /^text\/html/);
  assert.ok(answer.text.includes(message), answer.text);
}

/** Asserts that an object has exactly these keys. */
export function hasKeys(object: JsonObject, keys: readonly string[]): void {
  assert.deepEqual(Object.keys(object).sort(), [...keys].sort());
}

async function networkId(client: ApiClient, name: string): Promise<string> {
  const networks = (await client.get('network', `/networks?name=${name}`)).list('networks');
  return textOf(networks[0]?.['id']);
}
