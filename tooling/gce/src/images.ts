/** Images: those of others, and those that are made from files in buckets. */

import { createHash } from 'node:crypto';
import { createGunzip } from 'node:zlib';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { labelProblem, linkTo, messageAt, NAME, newId, textAt, textsAt, type Ground, type Message } from './ground.js';
import type { OperationError, Operations } from './operations.js';
import { invalid, notFound, Refusal } from './refusal.js';
import { PROJECT, PUBLIC_IMAGES } from './settings.js';
import type { Buckets } from './storage.js';

/** An image of ours, for those who look inside. */
export interface InspectedImage {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Of the disk in it. */
  readonly diskBytes: number;
  readonly sha256: string;
}

interface ImageRecord extends InspectedImage {
  readonly id: string;
  readonly readyAt: number;
  goneAt: number;
}

export class Images {
  private readonly records = new Map<string, ImageRecord>();

  constructor(
    private readonly ground: Ground,
    private readonly operations: Operations,
    private readonly buckets: Buckets,
  ) {}

  /** Throws unless the image can be used for a disk: a path by name or by family, with or without its project. */
  check(path: string): void {
    const [, project = PROJECT, family, name = ''] =
      /^(?:https:\/\/[^/]+\/compute\/v1\/)?(?:projects\/([^/]+)\/)?global\/images\/(family\/)?([^/]+)$/.exec(path) ??
      [];
    const known = PUBLIC_IMAGES.some(
      (image) => image.project === project && (family === undefined ? image.name === name : image.family === name),
    );
    if (known) return;
    if (project !== PROJECT || family !== undefined || !this.alive(name)) {
      throw notFound(`projects/${project}/global/images/${family ?? ''}${name}`);
    }
  }

  async insert(
    project: string,
    body: Message,
    requestId: string | undefined,
    failure?: OperationError,
  ): Promise<Message> {
    const earlier = this.operations.ofRequest(requestId);
    if (earlier !== undefined) return earlier;
    const name = textAt(body, 'name') ?? '';
    if (!NAME.test(name)) throw invalid(`Invalid value for field 'resource.name': '${name}'`);
    const labels = textsAt(body, 'labels');
    const wrong = labelProblem(labels);
    if (wrong !== undefined) throw invalid(wrong);
    const target = `projects/${project}/global/images/${name}`;
    if (this.alive(name)) throw new Refusal(409, 'alreadyExists', `The resource '${target}' already exists`);
    const source = textAt(messageAt(body, 'rawDisk'), 'source') ?? '';
    const disk = await this.diskAt(source);
    const error = failure ?? ('error' in disk ? disk.error : undefined);
    const { operationMs: ms } = this.ground.settings();
    if (error === undefined && 'sha256' in disk) {
      const readyAt = this.ground.clock.monotonic() + ms;
      this.records.set(name, { ...disk, id: newId(this.ground.random), name, labels, readyAt, goneAt: Infinity });
    }
    return this.operations.begin({ project, zone: undefined, type: 'insert', target, ms, error, requestId });
  }

  delete(project: string, name: string): Message {
    const record = this.records.get(name);
    if (record === undefined || !this.alive(name)) throw notFound(`projects/${project}/global/images/${name}`);
    const { operationMs: ms } = this.ground.settings();
    const target = `projects/${project}/global/images/${name}`;
    record.goneAt = this.ground.clock.monotonic() + ms;
    return this.operations.begin({
      project,
      zone: undefined,
      type: 'delete',
      target,
      ms,
      error: undefined,
      requestId: undefined,
    });
  }

  list(project: string): readonly Message[] {
    const now = this.ground.clock.monotonic();
    return this.inspect().map(({ name, id, labels, diskBytes, readyAt }) => ({
      kind: 'compute#image',
      id,
      name,
      labels,
      status: now >= readyAt ? 'READY' : 'PENDING',
      diskSizeGb: String(Math.ceil(diskBytes / 2 ** 30)),
      selfLink: linkTo(this.ground, `projects/${project}/global/images/${name}`),
    }));
  }

  inspect(): readonly ImageRecord[] {
    return [...this.records.values()].filter(({ name }) => this.alive(name));
  }

  private alive(name: string): boolean {
    const record = this.records.get(name);
    return record !== undefined && record.goneAt > this.ground.clock.monotonic();
  }

  private async diskAt(source: string): Promise<DiskFacts | { readonly error: OperationError }> {
    const [, bucket = '', object = ''] = /^https:\/\/storage\.googleapis\.com\/([^/]+)\/(.+)$/.exec(source) ?? [];
    const data = this.buckets.read(bucket, object);
    if (data === undefined)
      throw invalid(`Invalid value for field 'resource.rawDisk.source': '${source}'. The object was not found`);
    try {
      return await diskIn(data);
    } catch (error) {
      const message = `The tar archive is not valid: ${error instanceof Error ? error.message : String(error)}`;
      return { error: { code: 'INVALID_IMAGE_FORMAT', message } };
    }
  }
}

interface DiskFacts {
  readonly diskBytes: number;
  readonly sha256: string;
}

/** Unpacks a gzipped GNU tar, which must hold `disk.raw` and nothing else. */
async function diskIn(data: Iterable<Uint8Array>): Promise<DiskFacts> {
  const hash = createHash('sha256');
  let header = Buffer.alloc(0);
  let size = -1;
  let read = 0;
  let rest = 0;
  const take = (piece: Buffer): void => {
    const inDisk = piece.subarray(0, Math.max(0, size - read));
    hash.update(inDisk);
    read += inDisk.byteLength;
    const after = piece.subarray(inDisk.byteLength);
    if (after.some((byte) => byte !== 0)) throw new Error('there is more in it than disk.raw');
    rest += after.byteLength;
  };
  await pipeline(Readable.from(data), createGunzip(), async (pieces: AsyncIterable<Buffer>) => {
    for await (const piece of pieces) {
      if (size >= 0) {
        take(piece);
        continue;
      }
      header = Buffer.concat([header, piece]);
      if (header.byteLength < 512) continue;
      size = sizeIn(header);
      take(header.subarray(512));
    }
  });
  if (size < 0 || read < size || rest < 1024) throw new Error('it ends too early');
  return { diskBytes: size, sha256: hash.digest('hex') };
}

function sizeIn(header: Buffer): number {
  const name = header.toString('latin1', 0, 100).replace(/\0.*$/s, '');
  if (name !== 'disk.raw') throw new Error(`it holds "${name}" instead of disk.raw`);
  if (header.toString('latin1', 257, 265) !== 'ustar  \0') throw new Error('it is not in the format of GNU tar');
  const sum = header
    .subarray(0, 512)
    .reduce((total, byte, index) => total + (index >= 148 && index < 156 ? 32 : byte), 0);
  if (Number.parseInt(header.toString('latin1', 148, 156), 8) !== sum)
    throw new Error('the checksum of its header is wrong');
  if (header[124] === 0x80) return Number(header.readBigUInt64BE(128));
  return Number.parseInt(header.toString('latin1', 124, 136), 8);
}
