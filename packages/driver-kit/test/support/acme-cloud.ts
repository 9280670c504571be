/** A minimal in-memory cloud with every ability that the kit can require of a test cloud. */

import { createHash } from 'node:crypto';
import { abortReason, sleep, type Clock } from '@nodepool/core';
import type { FaultKind, PlannedFault } from '../../src/index.js';

/** The token of all calls. */
export const ACME_TOKEN = 'acme-token-0123456789';

/** An error of the cloud: the kind of fault, or the missing resource. */
export class AcmeError extends Error {
  constructor(
    readonly kind: AcmeFault | 'missing',
    readonly retryAfterMs = 2000,
    detail = '',
  ) {
    super(kind === 'echo' ? `acme: echo of Authorization: ${ACME_TOKEN}` : `acme: ${kind}${detail}`);
  }
}

/** Host of the cloud in messages; its calls are those of an object in this process. */
export const ACME_HOST = 'acme.example';

/** A fault of the kit, or one of the fixture's `HttpControls`. */
export type AcmeFault = FaultKind | 'redirect-away' | 'redirect-status' | 'endless';

type Planned = Omit<PlannedFault, 'kind'> & { readonly kind: AcmeFault; readonly retryAfterMs?: number };

export type Tags = Readonly<Record<string, string>>;

interface Server {
  readonly id: string;
  /** Id of the server that a person has copied. */
  readonly copyOf?: string;
  tags: Tags;
  readonly zone: string;
  readonly foreign: boolean;
  readonly cores: number;
  readonly listedFrom: number;
  readonly readyAt: number;
  failed: boolean;
  goneAt: number;
  listedUntil: number;
}

export interface ListedServer {
  readonly id: string;
  readonly copyOf: string | undefined;
  readonly tags: Tags;
  readonly zone: string;
  readonly cores: number;
  readonly ready: boolean;
  readonly failed: boolean;
}

interface Image {
  readonly id: string;
  /** Id of the image that a person has copied. */
  readonly copyOf?: string;
  readonly name: string;
  readonly tags: Tags;
  readonly sha256: string | null;
  /** Time from which the image can be used; undefined until its data has arrived. */
  readyAt: number | undefined;
}

export interface ListedImage extends Pick<Image, 'id' | 'name' | 'tags' | 'copyOf'> {
  readonly ready: boolean;
}

const LATENCY_MS = 10;
const PAGE = 3;
/** Cores by size. */
export const SIZES: Readonly<Record<string, number>> = { s: 2, m: 4 };

export class AcmeCloud {
  readonly zones = ['north', 'south'];
  bootMs = 0;
  deleteMs = 0;
  lagMs = 0;
  imageMs = 0;
  limit = Infinity;
  /** True if a server that is being deleted conflicts with further deletions. */
  conflicts = false;
  /** True if new servers have the lowest free number. */
  reusesIds = false;
  private servers: Server[] = [];
  private images: Image[] = [];
  /** Address of the redirects of `redirect-away`. */
  redirectsTo = '';
  /** True if all calls are redirected within the host, which a correct client does not notice. */
  isMoved = false;
  /** True if the credentials were replaced, which a correct client does not notice. */
  hasNewCredentials = false;
  private planned: Planned[] = [];
  private made = 0;

  constructor(readonly clock: Clock) {}

  plan(fault: Planned): void {
    this.planned.push(fault);
  }

  clearFaults(): void {
    this.planned = [];
    this.redirectsTo = '';
    this.isMoved = false;
  }

  /** Returns the existing servers without the lag of listings, for observers outside the cloud. */
  existing(): readonly Server[] {
    const now = this.clock.monotonic();
    return this.servers.filter(({ goneAt }) => goneAt > now);
  }

  addForeign(count: number): void {
    for (let made = 0; made < count; made += 1) this.add({}, 'north', true, 1);
  }

  break(id: string): void {
    this.server(id).failed = true;
  }

  destroy(id: string): void {
    this.end(this.server(id), 0);
  }

  /** Copies a server with its tags, as a person does. */
  copy(id: string): () => boolean {
    const copy: Server = { ...this.server(id), id: `server-${++this.made}`, copyOf: id, foreign: true };
    this.servers.push(copy);
    return () => this.existing().includes(copy);
  }

  /** Copies an image with its tags, as a person does. */
  copyImage(id: string): () => boolean {
    const original = this.images.find((image) => image.id === id);
    if (original === undefined) throw new AcmeError('missing');
    const copy: Image = { ...original, id: `image-${++this.made}`, copyOf: id };
    this.images.push(copy);
    return () => this.images.includes(copy);
  }

  describe(signal: AbortSignal): Promise<{ zones: readonly string[]; limit: number }> {
    return this.call('any', signal, () => ({ zones: this.zones, limit: this.limit }));
  }

  create(tags: Tags, zone: string, image: string, size: string, signal: AbortSignal): Promise<string> {
    return this.call('create', signal, () => {
      if (this.existing().length >= this.limit) throw new AcmeError('quota');
      if (image !== 'debian' && !this.images.some((each) => each.id === image && this.isReady(each)))
        throw new AcmeError('invalid');
      const cores = SIZES[size];
      if (cores === undefined) throw new AcmeError('invalid');
      return this.add(tags, zone, false, cores);
    });
  }

  tag(id: string, tags: Tags, signal: AbortSignal): Promise<void> {
    return this.call('any', signal, () => {
      this.server(id).tags = tags;
    });
  }

  remove(id: string, signal: AbortSignal): Promise<void> {
    return this.call('delete', signal, () => {
      const server = this.server(id);
      if (server.goneAt === Infinity) this.end(server, this.deleteMs);
      else if (this.conflicts) throw new AcmeError('conflict');
    });
  }

  list(from: number, signal: AbortSignal): Promise<{ items: readonly ListedServer[]; next: number | null }> {
    return this.call('list', signal, () => {
      const now = this.clock.monotonic();
      const listed = this.servers.filter((server) => server.listedFrom <= now && server.listedUntil > now);
      const items = listed.slice(from, from + PAGE).map(({ id, copyOf, tags, zone, cores, readyAt, failed }) => {
        return { id, copyOf, tags, zone, cores, failed, ready: readyAt <= now && !failed };
      });
      return { items, next: listed.length > from + PAGE ? from + PAGE : null };
    });
  }

  createImage(name: string, tags: Tags, sha256: string | null, signal: AbortSignal): Promise<string> {
    return this.call('any', signal, () => {
      const id = `image-${++this.made}`;
      this.images.push({ id, name, tags, sha256, readyAt: undefined });
      return id;
    });
  }

  async upload(id: string, data: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
    const hash = createHash('sha256');
    for await (const piece of data) hash.update(piece);
    await this.call('upload', signal, () => {
      const image = this.images.find((each) => each.id === id);
      if (image === undefined) throw new AcmeError('missing');
      if (image.sha256 !== null && image.sha256 !== hash.digest('hex')) throw new AcmeError('refuse');
      image.readyAt = this.clock.monotonic() + this.imageMs;
    });
  }

  removeImage(id: string, signal: AbortSignal): Promise<void> {
    return this.call('any', signal, () => {
      if (!this.images.some((image) => image.id === id)) throw new AcmeError('missing');
      this.images = this.images.filter((image) => image.id !== id);
    });
  }

  listImages(signal: AbortSignal): Promise<readonly ListedImage[]> {
    return this.call('any', signal, () => this.images.map((image) => ({ ...image, ready: this.isReady(image) })));
  }

  private isReady({ readyAt }: Image): boolean {
    return readyAt !== undefined && readyAt <= this.clock.monotonic();
  }

  private add(tags: Tags, zone: string, foreign: boolean, cores: number): string {
    const now = this.clock.monotonic();
    const id = `server-${this.nextNumber()}`;
    const times = { listedFrom: foreign ? now : now + this.lagMs, readyAt: now + this.bootMs };
    this.servers.push({
      id,
      tags,
      zone,
      foreign,
      cores,
      ...times,
      failed: false,
      goneAt: Infinity,
      listedUntil: Infinity,
    });
    return id;
  }

  private nextNumber(): number {
    this.made += 1;
    if (!this.reusesIds) return this.made;
    const used = new Set(this.existing().map((server) => server.id));
    let number = 1;
    while (used.has(`server-${number}`)) number += 1;
    return number;
  }

  private end(server: Server, afterMs: number): void {
    server.goneAt = this.clock.monotonic() + afterMs;
    server.listedUntil = server.goneAt + this.lagMs;
  }

  private server(id: string): Server {
    const server = this.existing().find((each) => each.id === id);
    if (server === undefined) throw new AcmeError('missing');
    return server;
  }

  private async call<T>(operation: PlannedFault['operation'], signal: AbortSignal, effect: () => T): Promise<T> {
    if (signal.aborted) throw abortReason(signal);
    if (this.redirectsTo !== '') throw new AcmeError('redirect-away', undefined, ` ${this.redirectsTo}`);
    const fault = this.nextFault(operation);
    const kind = fault?.kind;
    await sleep(this.clock, LATENCY_MS / 2, signal);
    if (kind === 'hang') await sleep(this.clock, 365 * 86_400_000, signal);
    const isLate = kind === 'lose-answer' || kind === 'fail-after';
    if (kind !== undefined && !isLate) throw new AcmeError(kind, fault?.retryAfterMs);
    const result = effect();
    await sleep(this.clock, LATENCY_MS / 2, signal);
    if (kind !== undefined) throw new AcmeError(kind);
    return result;
  }

  private nextFault(operation: PlannedFault['operation']): Planned | undefined {
    const concerned = (fault: Planned): boolean => fault.operation === 'any' || fault.operation === operation;
    const due = this.planned.find((fault) => fault.skip === 0 && concerned(fault));
    this.planned = this.planned
      .filter((fault) => fault !== due)
      .map((fault) => (concerned(fault) ? { ...fault, skip: Math.max(0, fault.skip - 1) } : fault));
    return due;
  }
}
