/** Images of glance: metadata and checksums, and the data if it is small. */

import { createHash } from 'node:crypto';
import type { OpenStackState } from '../cloud-state.js';
import type { Caller } from '../http/request-context.js';
import { newUuid } from '../text.js';
import { Table, type Lag, type Owned } from '../table.js';

export type ImageStatus = 'queued' | 'saving' | 'active';

export interface ImageRecord extends Owned {
  name: string | null;
  diskFormat: string | null;
  containerFormat: string | null;
  visibility: string;
  protected: boolean;
  /** Hidden images are listed only on request (`os_hidden=true`). */
  hidden: boolean;
  minDisk: number;
  minRam: number;
  tags: readonly string[];
  /** Additional properties. */
  properties: Map<string, string>;
  status: ImageStatus;
  /** Bytes; null before the upload. */
  size: number | null;
  md5: string | null;
  sha512: string | null;
  updatedAt: number;
  /** Undefined if there is no data, or too much to keep. */
  data: Buffer | undefined;
}

/** Attributes of a creation request. */
export type NewImage = Pick<
  ImageRecord,
  | 'name'
  | 'diskFormat'
  | 'containerFormat'
  | 'visibility'
  | 'protected'
  | 'hidden'
  | 'minDisk'
  | 'minRam'
  | 'tags'
  | 'properties'
> & { readonly id: string | undefined };

/** The attributes of an image that a service creates. */
export const NO_IMAGE: NewImage = {
  id: undefined,
  name: null,
  diskFormat: 'raw',
  containerFormat: 'bare',
  visibility: 'private',
  protected: false,
  hidden: false,
  minDisk: 0,
  minRam: 0,
  tags: [],
  properties: new Map<string, string>(),
};

export class CloudImages {
  readonly table = new Table<ImageRecord>();

  constructor(private readonly state: OpenStackState) {}

  create(spec: NewImage, projectId: string): ImageRecord {
    const now = this.state.clock.now();
    const image: ImageRecord = {
      ...spec,
      id: spec.id ?? newUuid(this.state.random),
      project: projectId,
      createdAt: now,
      updatedAt: now,
      status: 'queued',
      size: null,
      md5: null,
      sha512: null,
      data: undefined,
    };
    this.table.add(image);
    return image;
  }

  /** Adds an image that already has data. */
  addActive(spec: NewImage, projectId: string, data: Buffer): ImageRecord {
    const image = this.create(spec, projectId);
    this.finish(image, { size: data.length, md5: hashOf('md5', data), sha512: hashOf('sha512', data), data });
    return image;
  }

  /** Returns the image if the caller can see it: it is public or belongs to the caller's project. */
  visible(id: string, caller: Caller): ImageRecord | undefined {
    const image = this.table.get(id);
    return image !== undefined && maySee(image, caller) ? image : undefined;
  }

  list(caller: Caller, lag: Lag): ImageRecord[] {
    return this.table.seen(this.state.clock.now(), lag).filter((image) => maySee(image, caller));
  }

  /** Receives the data. If the stream fails, the image remains unchanged and the promise rejects. */
  async receive(image: ImageRecord, data: AsyncIterable<Uint8Array>): Promise<void> {
    const [md5, sha512] = [createHash('md5'), createHash('sha512')];
    const { keepImageBytes: limit, damagesImages = false } = this.state.settings;
    let kept: Uint8Array[] | undefined = [];
    let size = 0;
    image.status = 'saving';
    try {
      for await (const piece of data) {
        md5.update(piece);
        sha512.update(piece);
        size += piece.byteLength;
        if (size > limit) kept = undefined;
        else kept?.push(piece);
      }
    } catch (error) {
      image.status = 'queued';
      throw error;
    }
    if (damagesImages) sha512.update('damage');
    this.finish(image, {
      size,
      md5: damagesImages ? null : md5.digest('hex'),
      sha512: sha512.digest('hex'),
      data: kept === undefined ? undefined : Buffer.concat(kept),
    });
  }

  touch(image: ImageRecord): void {
    image.updatedAt = this.state.clock.now();
  }

  delete(id: string): boolean {
    return this.table.remove(id, this.state.clock.now());
  }

  private finish(image: ImageRecord, facts: Pick<ImageRecord, 'size' | 'md5' | 'sha512' | 'data'>): void {
    Object.assign(image, facts, { status: 'active' });
    this.touch(image);
  }
}

function hashOf(algorithm: string, data: Buffer): string {
  return createHash(algorithm).update(data).digest('hex');
}

function maySee(image: ImageRecord, caller: Caller): boolean {
  return caller.admin || image.visibility === 'public' || image.project === caller.projectId;
}
