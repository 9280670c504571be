/** Buckets and resumable uploads (https://cloud.google.com/storage/docs/performing-resumable-uploads). */

import { createHash } from 'node:crypto';
import { newId, type GceState } from './cloud-state.js';
import { textAt, textsAt, type Message } from './messages.js';
import { GceError } from './api-error.js';
import { BUCKET } from './settings.js';

/** All chunks except the last must have a multiple of this size (bytes). */
const GRAIN_BYTES = 256 * 1024;

interface ObjectRecord {
  readonly name: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly pieces: readonly Uint8Array[];
  readonly size: number;
  readonly md5Hash: string;
}

interface Session {
  readonly name: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly pieces: Buffer[];
  received: number;
  finished: Message | undefined;
}

/** An object as tests inspect it. */
export interface InspectedObject {
  readonly name: string;
  readonly size: number;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Progress of an upload: the number of received bytes, or the completed object. */
export type Progress = { readonly received: number } | { readonly object: Message };

export class Buckets {
  private readonly objects = new Map<string, ObjectRecord>();
  private readonly sessions = new Map<string, Session>();

  constructor(private readonly state: GceState) {}

  /** Starts an upload and returns its id. */
  begin(bucket: string, body: Message, name: string | undefined): string {
    known(bucket);
    const id = newId(this.state.random);
    const object = name ?? textAt(body, 'name') ?? '';
    if (object === '') throw new GceError(400, 'required', 'Required object name');
    this.sessions.set(id, {
      name: object,
      metadata: textsAt(body, 'metadata'),
      pieces: [],
      received: 0,
      finished: undefined,
    });
    return id;
  }

  /** Receives a chunk; `range` is its Content-Range. */
  put(id: string, range: string, body: Buffer): Progress {
    const session = this.session(id);
    const [, from, last, total] = /^bytes (?:(\d+)-(\d+)|\*)\/(\d+|\*)$/.exec(range) ?? [];
    if (total === undefined) throw new GceError(400, 'invalid', `Invalid Content-Range: ${range}`);
    if (session.finished !== undefined) return { object: session.finished };
    if (from !== undefined) this.take(session, Number(from), Number(last), total, body);
    if (total === '*' || session.received < Number(total)) return { received: session.received };
    return { object: this.finish(session) };
  }

  cancel(id: string): void {
    this.session(id);
    this.sessions.delete(id);
  }

  list(bucket: string, prefix: string): readonly Message[] {
    known(bucket);
    return [...this.objects.values()].filter(({ name }) => name.startsWith(prefix)).map(view);
  }

  get(bucket: string, name: string): Message {
    known(bucket);
    const object = this.objects.get(name);
    if (object === undefined) throw noObject(bucket, name);
    return view(object);
  }

  delete(bucket: string, name: string): void {
    known(bucket);
    if (!this.objects.delete(name)) throw noObject(bucket, name);
  }

  /** Returns the content of an object. */
  read(bucket: string, name: string): Iterable<Uint8Array> | undefined {
    return bucket === BUCKET ? this.objects.get(name)?.pieces : undefined;
  }

  /** Copies an object with its metadata, as `objects.rewrite` does by default. */
  copy(name: string, copy: string): void {
    const original = this.objects.get(name);
    if (original === undefined) throw new Error(`there is no object ${name}`);
    this.objects.set(copy, { ...original, name: copy });
  }

  inspect(): readonly InspectedObject[] {
    return [...this.objects.values()];
  }

  /** Returns the number of uploads in progress. */
  openSessions(): number {
    return [...this.sessions.values()].filter(({ finished }) => finished === undefined).length;
  }

  private take(session: Session, from: number, last: number, total: string, body: Buffer): void {
    if (body.byteLength !== last - from + 1) throw new GceError(400, 'invalid', 'Content-Range does not fit the body');
    if (total === '*' && body.byteLength % GRAIN_BYTES !== 0) {
      throw new GceError(
        400,
        'invalid',
        `A piece that is not the last one must have a multiple of ${GRAIN_BYTES} bytes`,
      );
    }
    if (from > session.received) throw new GceError(503, 'backendError', 'A part before this one is missing');
    const fresh = body.subarray(session.received - from);
    session.pieces.push(fresh);
    session.received += fresh.byteLength;
  }

  private finish(session: Session): Message {
    const { name, metadata, pieces, received: size } = session;
    const md5 = createHash('md5');
    for (const piece of pieces) md5.update(piece);
    if (this.state.settings.damagesObjects) md5.update('damage');
    const object: ObjectRecord = { name, metadata, pieces: [...pieces], size, md5Hash: md5.digest('base64') };
    this.objects.set(name, object);
    // Frees the content of deleted objects.
    pieces.length = 0;
    session.finished = view(object);
    return session.finished;
  }

  private session(id: string): Session {
    const session = this.sessions.get(id);
    if (session !== undefined) return session;
    throw new GceError(404, 'notFound', `There is no upload ${id}`);
  }
}

function view({ name, metadata, size, md5Hash }: ObjectRecord): Message {
  return {
    kind: 'storage#object',
    id: `${BUCKET}/${name}/1`,
    name,
    bucket: BUCKET,
    size: String(size),
    md5Hash,
    metadata,
  };
}

function known(bucket: string): void {
  if (bucket !== BUCKET) throw new GceError(404, 'notFound', 'The specified bucket does not exist.');
}

function noObject(bucket: string, name: string): GceError {
  return new GceError(404, 'notFound', `No such object: ${bucket}/${name}`);
}
