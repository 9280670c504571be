/** Images: public ones, and those created from files in buckets. */

import { createHash } from 'node:crypto';
import { createGunzip } from 'node:zlib';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { linkTo, newId, type GceState } from './cloud-state.js';
import { labelProblem, messageAt, NAME, textAt, textsAt, type Message } from './messages.js';
import { checkRequestId } from './instance-checks.js';
import type { OperationError } from './faults.js';
import type { Operations } from './operations.js';
import { invalid, notFound, GceError } from './api-error.js';
import { PROJECT, PUBLIC_IMAGES } from './settings.js';
import type { Buckets } from './storage.js';

/** An image as tests inspect it. */
export interface InspectedImage {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Size of the disk in the image. */
  readonly diskBytes: number;
  readonly sha256: string;
  /** Body of the creation request. */
  readonly body: Message;
}

interface ImageRecord extends InspectedImage {
  readonly id: string;
  readonly project: string;
  readonly readyAt: number;
  goneAt: number;
  deprecated?: string;
}

export class Images {
  private readonly records = new Map<string, ImageRecord>();

  constructor(
    private readonly state: GceState,
    private readonly operations: Operations,
    private readonly buckets: Buckets,
  ) {}

  /** Returns the image at a path or URL, by name or family. Throws if it does not exist. */
  imageAt(path: string): Message {
    const [, project = PROJECT, family, name = ''] =
      /^(?:https?:\/\/[^/]+\/compute\/v1\/)?(?:projects\/([^/]+)\/)?global\/images\/(family\/)?([^/]+)$/.exec(path) ??
      [];
    return family === undefined ? this.find(project, name) : this.newestOf(project, name);
  }

  /** Returns the size in GB of the image at a path or URL. Throws if it does not exist. */
  sizeOf(path: string): number {
    return Number(this.imageAt(path)['diskSizeGb']);
  }

  get(project: string, name: string): Message {
    return this.find(project, name);
  }

  /** Returns the newest image of a family that is not deprecated. */
  newestOf(project: string, family: string): Message {
    const found = this.list(project).findLast((image) => image['family'] === family);
    if (found === undefined) throw notFound(`projects/${project}/global/images/family/${family}`);
    return found;
  }

  private find(project: string, name: string): Message {
    const found = this.list(project).find((image) => image['name'] === name);
    if (found === undefined) throw notFound(`projects/${project}/global/images/${name}`);
    return found;
  }

  async insert(
    project: string,
    body: Message,
    requestId: string | undefined,
    failure?: OperationError,
  ): Promise<Message> {
    checkRequestId(requestId);
    const earlier = this.operations.ofRequest(requestId);
    if (earlier !== undefined) return earlier;
    const name = textAt(body, 'name') ?? '';
    if (!NAME.test(name)) throw invalid(`Invalid value for field 'resource.name': '${name}'`);
    const labels = textsAt(body, 'labels');
    const wrong = labelProblem(labels);
    if (wrong !== undefined) throw invalid(wrong);
    const target = `projects/${project}/global/images/${name}`;
    if (this.alive(name)) throw new GceError(409, 'alreadyExists', `The resource '${target}' already exists`);
    const source = textAt(messageAt(body, 'rawDisk'), 'source') ?? '';
    const disk = await this.diskAt(source);
    // Another insertion may have used the name while the disk was read.
    if (this.alive(name)) throw new GceError(409, 'alreadyExists', `The resource '${target}' already exists`);
    const error = failure ?? ('error' in disk ? disk.error : undefined);
    const { operationMs: ms } = this.state.settings;
    if (error === undefined && 'sha256' in disk) {
      const readyAt = this.state.clock.monotonic() + ms;
      const id = newId(this.state.random);
      this.records.set(name, { ...disk, id, project, name, body, labels, readyAt, goneAt: Infinity });
    }
    return this.operations.begin({ project, zone: undefined, type: 'insert', target, ms, error, requestId });
  }

  delete(project: string, name: string): Message {
    const record = this.records.get(name);
    if (record === undefined || !this.alive(name)) throw notFound(`projects/${project}/global/images/${name}`);
    const { operationMs: ms } = this.state.settings;
    const target = `projects/${project}/global/images/${name}`;
    record.goneAt = this.state.clock.monotonic() + ms;
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

  /** Lets the creations in progress from an object fail, because Compute Engine reads the object until their end. */
  objectDeleted(bucket: string, object: string): void {
    for (const { name, project, body } of this.inspect()) {
      const source = textAt(messageAt(body, 'rawDisk'), 'source');
      if (source !== `https://storage.googleapis.com/${bucket}/${object}`) continue;
      const message = `The resource '${source}' was not found`;
      const target = `projects/${project}/global/images/${name}`;
      if (this.operations.fail(target, { code: 'RESOURCE_NOT_FOUND', message })) this.records.delete(name);
    }
  }

  list(project: string): readonly Message[] {
    const now = this.state.clock.monotonic();
    const pathOf = (name: string): string => linkTo(this.state, `projects/${project}/global/images/${name}`);
    const published = PUBLIC_IMAGES.filter((image) => image.project === project).map(({ name, family, gb }) => ({
      kind: 'compute#image',
      name,
      family,
      status: 'READY',
      diskSizeGb: String(gb),
      selfLink: pathOf(name),
    }));
    const own = this.inspect().filter((image) => image.project === project);
    return [
      ...published,
      ...own.map(({ name, id, labels, diskBytes, readyAt, body, deprecated }) => ({
        ...pick(body, ['family', 'architecture', 'guestOsFeatures', 'description']),
        kind: 'compute#image',
        id,
        name,
        labels,
        status: now >= readyAt ? 'READY' : 'PENDING',
        ...(deprecated === undefined ? {} : { deprecated: { state: deprecated } }),
        diskSizeGb: String(Math.ceil(diskBytes / 2 ** 30)),
        selfLink: pathOf(name),
      })),
    ];
  }

  /** Creates an image with the labels of another one. */
  copy(name: string, copy: string): void {
    const original = this.records.get(name);
    if (original === undefined) throw new Error(`there is no image ${name}`);
    this.records.set(copy, { ...original, id: newId(this.state.random), name: copy, goneAt: Infinity });
  }

  /** Marks an image, which lists contain nevertheless, e.g. as `OBSOLETE`. */
  deprecate(name: string, state: string): void {
    const record = this.records.get(name);
    if (record !== undefined) record.deprecated = state;
  }

  inspect(): readonly ImageRecord[] {
    return [...this.records.values()].filter(({ name }) => this.alive(name));
  }

  private alive(name: string): boolean {
    const record = this.records.get(name);
    return record !== undefined && record.goneAt > this.state.clock.monotonic();
  }

  private async diskAt(source: string): Promise<DiskFacts | { readonly error: OperationError }> {
    const [, bucket = '', object = ''] = /^https:\/\/storage\.googleapis\.com\/([^/]+)\/(.+)$/.exec(source) ?? [];
    const data = this.buckets.read(bucket, object);
    if (data === undefined)
      throw invalid(`Invalid value for field 'resource.rawDisk.source': '${source}'. The object was not found`);
    try {
      return await diskIn(data, this.state.settings.diskGrainBytes);
    } catch (error) {
      const message = `The tar archive is not valid: ${error instanceof Error ? error.message : String(error)}`;
      return { error: { code: 'INVALID_IMAGE_FORMAT', message } };
    }
  }
}

function pick(message: Message, keys: readonly string[]): Message {
  return Object.fromEntries(keys.flatMap((key) => (message[key] === undefined ? [] : [[key, message[key]]])));
}

const PIECE_BYTES = 2 ** 20;

interface DiskFacts {
  readonly diskBytes: number;
  readonly sha256: string;
}

/** Unpacks a gzipped GNU tar, which must contain only `disk.raw`. */
async function diskIn(data: Iterable<Uint8Array>, grainBytes: number): Promise<DiskFacts> {
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
  await pipeline(
    Readable.from(data),
    createGunzip({ chunkSize: PIECE_BYTES }),
    async (pieces: AsyncIterable<Buffer>) => {
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
    },
  );
  if (size < 0 || read < size || rest < 1024) throw new Error('it ends too early');
  if (size % grainBytes !== 0) throw new Error(`the size of disk.raw is not a multiple of ${grainBytes} bytes`);
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
