/** The images of the example cloud. Their data are counted and hashed, but not stored. */

import { createHash, type Hash } from 'node:crypto';
import type { RandomSource } from '@nodepool/core';
import { CloudError, type CloudImage, type ImageSpec, type Page } from './types.js';

interface ImageRecord {
  readonly id: string;
  readonly sequence: number;
  readonly spec: ImageSpec;
  state: CloudImage['state'];
}

export class CloudImages {
  private readonly records = new Map<string, ImageRecord>();
  private readonly idPrefix: string;
  private made = 0;

  constructor(random: RandomSource) {
    this.idPrefix = `img-${random.uuidHex().slice(0, 8)}`;
  }

  create(spec: ImageSpec): CloudImage {
    this.made += 1;
    const id = `${this.idPrefix}-${String(this.made).padStart(6, '0')}`;
    const record: ImageRecord = { id, sequence: this.made, spec, state: 'queued' };
    this.records.set(id, record);
    return describe(record);
  }

  get(id: string): CloudImage | undefined {
    const record = this.records.get(id);
    return record === undefined ? undefined : describe(record);
  }

  /** Deletes an image. Returns false if there is no such image. */
  delete(id: string): boolean {
    return this.records.delete(id);
  }

  list(marker: string | null, limit: number): Page<CloudImage> {
    const after = marker === null ? 0 : Number(marker);
    if (!Number.isInteger(after)) throw new CloudError('invalid', `marker ${marker ?? ''} is not from a listing`);
    const rest = [...this.records.values()].filter((record) => record.sequence > after);
    const page = rest.slice(0, limit);
    return { items: page.map(describe), next: rest.length > limit ? String(page.at(-1)?.sequence) : null };
  }

  /**
   * Receives and verifies the data of a queued image. `breaksOff` is called after each chunk and returns true to make
   * the upload fail. An image with wrong data becomes `failed`.
   */
  async receive(id: string, data: AsyncIterable<Uint8Array>, breaksOff: () => boolean): Promise<CloudImage> {
    const record = this.records.get(id);
    if (record === undefined) throw new CloudError('not-found', `there is no image ${id}`);
    if (record.state !== 'queued') throw new CloudError('invalid', `image ${id} has its data already`);
    const md5 = createHash('md5');
    const sha256 = createHash('sha256');
    let size = 0;
    for await (const piece of data) {
      if (breaksOff()) throw new CloudError('internal', `the upload of image ${id} broke off`);
      size += piece.byteLength;
      if (size > record.spec.size) break;
      md5.update(piece);
      sha256.update(piece);
    }
    const wrong = difference(record.spec, size, md5, sha256);
    record.state = wrong === undefined ? 'ready' : 'failed';
    if (wrong !== undefined) throw new CloudError('checksum', `the data of image ${id} are damaged: ${wrong}`);
    return describe(record);
  }
}

function difference(spec: ImageSpec, size: number, md5: Hash, sha256: Hash): string | undefined {
  if (size !== spec.size) return `${size > spec.size ? 'more than' : `${size} bytes instead of`} ${spec.size} bytes`;
  if (spec.md5 !== null && md5.digest('hex') !== spec.md5) return `their md5 is not ${spec.md5}`;
  if (spec.sha256 !== null && sha256.digest('hex') !== spec.sha256) return `their sha256 is not ${spec.sha256}`;
  return undefined;
}

function describe({ id, spec, state }: ImageRecord): CloudImage {
  const { name, format, size, tags, properties } = spec;
  return { id, name, format, size, state, tags, properties };
}
