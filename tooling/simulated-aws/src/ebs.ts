/** The direct APIs of EBS: https://docs.aws.amazon.com/ebs/latest/userguide/ebs-accessing-snapshot.html. */

import { createHash } from 'node:crypto';
import type {
  CompleteSnapshotRequest,
  CompleteSnapshotResponse,
  GetSnapshotBlockRequest,
  GetSnapshotBlockResponse,
  ListSnapshotBlocksRequest,
  ListSnapshotBlocksResponse,
  PutSnapshotBlockRequest,
  PutSnapshotBlockResponse,
  StartSnapshotRequest,
  StartSnapshotResponse,
} from '@aws-sdk/client-ebs';
import { faultOf, operation, type AwsCall, type Handlers } from './call.js';
import type { Snapshot } from './ec2/records.js';
import { addSnapshot, completeLater } from './ec2/snapshots.js';
import { AwsError } from './protocol/aws-error.js';
import { sha256 } from './protocol/signature.js';
import type { Region } from './region.js';
import { ACCOUNT } from './settings.js';
import { withoutTrailingZeros } from './s3/buckets.js';

const BLOCK_BYTES = 524_288;
const DEFAULT_TIMEOUT_MINUTES = 60;
const MAX_VOLUME_GIB = 65_536;

interface Block {
  /** In base64. */
  readonly checksum: string;
  readonly content: Buffer | undefined;
}

/** A snapshot that is being written. */
interface Draft {
  readonly blocks: Map<number, Block>;
  /** Time of the last call; without further ones, the snapshot fails after `timeoutMs`. */
  usedAt: number;
  readonly timeoutMs: number;
  isOpen: boolean;
}

export class EbsDirect {
  private readonly drafts = new Map<string, Draft>();
  private readonly started = new Map<string, { readonly parameters: string; readonly answer: StartSnapshotResponse }>();

  constructor(
    private readonly regionOf: (call: AwsCall) => Region,
    private readonly storesContent: () => boolean,
  ) {}

  handlers(): Handlers {
    return {
      StartSnapshot: operation<StartSnapshotRequest, StartSnapshotResponse>((input, call) => this.start(input, call)),
      PutSnapshotBlock: operation<PutSnapshotBlockRequest, PutSnapshotBlockResponse>((input, call) =>
        this.put(input, call),
      ),
      CompleteSnapshot: operation<CompleteSnapshotRequest, CompleteSnapshotResponse>((input, call) =>
        this.complete(input, call),
      ),
      ListSnapshotBlocks: operation<ListSnapshotBlocksRequest, ListSnapshotBlocksResponse>((input, call) => {
        const snapshot = this.snapshotOf(input.SnapshotId, call);
        const indexes = [...(this.drafts.get(snapshot.id)?.blocks.keys() ?? [])].sort((a, b) => a - b);
        const start = input.NextToken === undefined ? (input.StartingBlockIndex ?? 0) : Number(input.NextToken);
        const rest = indexes.filter((index) => index >= start);
        const page = rest.slice(0, input.MaxResults ?? 10_000);
        const next = rest[page.length];
        return {
          Blocks: page.map((BlockIndex) => ({ BlockIndex, BlockToken: tokenOf(snapshot.id, BlockIndex) })),
          ...{ VolumeSize: snapshot.sizeGib, BlockSize: BLOCK_BYTES, ExpiryTime: new Date(call.now + 604_800_000) },
          ...(next === undefined ? {} : { NextToken: String(next) }),
        };
      }),
      GetSnapshotBlock: operation<GetSnapshotBlockRequest, GetSnapshotBlockResponse>((input, call) => {
        const snapshot = this.snapshotOf(input.SnapshotId, call);
        const index = input.BlockIndex ?? 0;
        if (input.BlockToken !== tokenOf(snapshot.id, index))
          throw invalid('The block token is invalid', 'INVALID_BLOCK_TOKEN');
        const block = this.drafts.get(snapshot.id)?.blocks.get(index);
        if (block?.content === undefined) throw invalid('The block does not exist', 'INVALID_BLOCK');
        const { content, checksum } = block;
        // A body is a stream for clients, and bytes for the writer of answers.
        const BlockData = content as unknown as NonNullable<GetSnapshotBlockResponse['BlockData']>;
        return { BlockData, DataLength: content.length, Checksum: checksum, ChecksumAlgorithm: 'SHA256' };
      }),
    };
  }

  private start(input: StartSnapshotRequest, call: AwsCall): StartSnapshotResponse {
    const { ClientToken: token, ...parameters } = input;
    const key = `${call.region} ${token}`;
    const earlier = token === undefined ? undefined : this.started.get(key);
    if (earlier !== undefined) {
      if (earlier.parameters === JSON.stringify(parameters)) return earlier.answer;
      throw new AwsError('ConflictException', 'The client token was used with other parameters', 503);
    }
    if (input.ParentSnapshotId !== undefined)
      throw invalid('The simulation has no parent snapshots', 'INVALID_SNAPSHOT_ID');
    if (input.KmsKeyArn !== undefined && input.Encrypted !== true) {
      throw invalid('KmsKeyArn requires Encrypted', 'INVALID_PARAMETER_VALUE');
    }
    if ((input.VolumeSize ?? 0) > MAX_VOLUME_GIB) throw invalid('The volume is too large', 'INVALID_VOLUME_SIZE');
    const tags = tagsOf(input);
    if (tags.size > 0) call.authorize('ec2:CreateTags');
    const region = this.regionOf(call);
    const { VolumeSize: sizeGib = 0, Description: description = '', Encrypted: encrypted = false } = input;
    const snapshot = addSnapshot(region, { sizeGib, description, encrypted, tags });
    const timeoutMs = (input.Timeout ?? DEFAULT_TIMEOUT_MINUTES) * 60_000;
    const draft: Draft = { blocks: new Map(), usedAt: call.now, timeoutMs, isOpen: true };
    this.drafts.set(snapshot.id, draft);
    this.expire(region, snapshot, draft);
    const answer: StartSnapshotResponse = {
      ...{ SnapshotId: snapshot.id, OwnerId: ACCOUNT, Status: 'pending', StartTime: new Date(call.now) },
      ...{ VolumeSize: sizeGib, BlockSize: BLOCK_BYTES, Description: description, KmsKeyArn: snapshot.kmsKeyId },
      Tags: [...tags].map(([Key, Value]) => ({ Key, Value })),
    };
    if (token !== undefined) this.started.set(key, { parameters: JSON.stringify(parameters), answer });
    return answer;
  }

  /** Lets a snapshot fail that is not written to for too long. */
  private expire(region: Region, snapshot: Snapshot, draft: Draft): void {
    region.world.timeline.at(draft.usedAt + draft.timeoutMs, (at) => {
      if (!draft.isOpen) return;
      if (at < draft.usedAt + draft.timeoutMs) {
        this.expire(region, snapshot, draft);
        return;
      }
      draft.isOpen = false;
      snapshot.state = 'error';
      snapshot.stateMessage = 'The snapshot was not completed in time';
    });
  }

  private put(input: PutSnapshotBlockRequest, call: AwsCall): PutSnapshotBlockResponse {
    const { snapshot, draft } = this.open(input.SnapshotId, call);
    const { BlockIndex: index = 0, DataLength: length, Checksum: checksum = '' } = input;
    if (call.body.length !== BLOCK_BYTES || length !== BLOCK_BYTES) {
      throw invalid(`A block must have ${BLOCK_BYTES} bytes`, 'INVALID_BLOCK');
    }
    if (index * BLOCK_BYTES >= snapshot.sizeGib * 2 ** 30)
      throw invalid('The block is beyond the volume', 'INVALID_BLOCK');
    if (createHash('sha256').update(call.body).digest('base64') !== checksum) {
      throw invalid('The checksum does not match the block', 'INVALID_BLOCK');
    }
    const content = this.storesContent() ? Buffer.from(call.body) : undefined;
    draft.blocks.set(index, { checksum, content });
    return { Checksum: checksum, ChecksumAlgorithm: 'SHA256' };
  }

  private complete(input: CompleteSnapshotRequest, call: AwsCall): CompleteSnapshotResponse {
    const found = this.snapshotOf(input.SnapshotId, call);
    // Completing a completed snapshot again changes nothing.
    if (found.state === 'completed') return { Status: 'completed' };
    const { snapshot, draft } = this.open(input.SnapshotId, call);
    const { ChangedBlocksCount: count, Checksum: checksum } = input;
    if (count !== 0 && count !== draft.blocks.size) {
      throw invalid(`The snapshot has ${draft.blocks.size} changed blocks, not ${count}`, 'INVALID_PARAMETER_VALUE');
    }
    const blocks = [...draft.blocks].sort(([a], [b]) => a - b);
    if (checksum !== undefined) {
      const sums = blocks.map(([, block]) => Buffer.from(block.checksum, 'base64'));
      const sum = createHash('sha256').update(Buffer.concat(sums)).digest('base64');
      if (sum !== checksum) throw invalid('The checksum does not match the snapshot', 'INVALID_PARAMETER_VALUE');
    }
    draft.isOpen = false;
    snapshot.sha256 = hashOf(blocks);
    completeLater(this.regionOf(call), snapshot, call);
    const isFailing = faultOf(call, 'task-failure') !== undefined;
    return { Status: snapshot.state === 'completed' && !isFailing ? 'completed' : 'pending' };
  }

  private snapshotOf(id = '', call: AwsCall): Snapshot {
    const snapshot = this.regionOf(call).snapshots.get(id);
    if (snapshot !== undefined && snapshot.ownerId === ACCOUNT) return snapshot;
    const message = `The snapshot '${id}' does not exist.`;
    throw new AwsError('ResourceNotFoundException', message, 404, { Reason: 'SNAPSHOT_NOT_FOUND' });
  }

  private open(id: string | undefined, call: AwsCall): { readonly snapshot: Snapshot; readonly draft: Draft } {
    const snapshot = this.snapshotOf(id, call);
    const draft = this.drafts.get(snapshot.id);
    if (draft?.isOpen !== true) {
      throw invalid(`The snapshot '${snapshot.id}' is not pending`, 'INVALID_SNAPSHOT_ID');
    }
    draft.usedAt = call.now;
    return { snapshot, draft };
  }
}

/** SHA-256 of the disk without trailing zeros; undefined if its content was not stored. */
function hashOf(blocks: readonly (readonly [index: number, block: Block])[]): string | undefined {
  const hash = createHash('sha256');
  let position = 0;
  let zeros = 0;
  for (const [index, { content }] of blocks) {
    if (content === undefined) return undefined;
    zeros += index * BLOCK_BYTES - position;
    position = (index + 1) * BLOCK_BYTES;
    const used = withoutTrailingZeros(content);
    if (used.length === 0) {
      zeros += BLOCK_BYTES;
      continue;
    }
    for (; zeros > 0; zeros -= Math.min(zeros, BLOCK_BYTES)) hash.update(Buffer.alloc(Math.min(zeros, BLOCK_BYTES)));
    hash.update(used);
    zeros = BLOCK_BYTES - used.length;
  }
  return hash.digest('hex');
}

function tagsOf({ Tags: tags = [] }: StartSnapshotRequest): ReadonlyMap<string, string> {
  const wrong = tags.find(({ Key: key = '' }) => key === '' || /^aws:/i.test(key));
  const keys = new Set(tags.map(({ Key: key }) => key));
  if (wrong !== undefined || keys.size < tags.length || tags.length > 50)
    throw invalid('The tags are invalid', 'INVALID_TAG');
  return new Map(tags.map(({ Key: key = '', Value: value = '' }) => [key, value]));
}

function tokenOf(snapshotId: string, index: number): string {
  return Buffer.from(sha256(`${snapshotId} ${index}`).slice(0, 40)).toString('base64');
}

function invalid(message: string, reason: string): AwsError {
  return new AwsError('ValidationException', message, 400, { Reason: reason });
}
