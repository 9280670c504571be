/** Snapshots. */

import type {
  CopySnapshotRequest,
  CopySnapshotResult,
  CreateSnapshotRequest,
  DeleteSnapshotRequest,
  DescribeSnapshotsRequest,
  DescribeSnapshotsResult,
  Snapshot as ShownSnapshot,
} from '@aws-sdk/client-ec2';
import { faultOf, operation, type AwsCall, type Handlers } from '../call.js';
import { AwsError } from '../protocol/aws-error.js';
import type { Region } from '../region.js';
import { ACCOUNT, KMS_KEY_ARN } from '../settings.js';
import { filtered, pageOf, refusePaging, type Filterable } from './lists.js';
import type { Snapshot } from './records.js';
import { KINDS } from './table.js';
import { shownTags, tagsByType } from './tags.js';

export interface NewSnapshot extends Pick<Snapshot, 'description' | 'sizeGib' | 'encrypted'> {
  readonly volumeId?: string;
  readonly ownerId?: string;
  readonly sha256?: string | undefined;
  readonly tags?: ReadonlyMap<string, string> | undefined;
}

/** Volume of snapshots that come from no volume, as AWS shows them. */
const NO_VOLUME = 'vol-ffffffff';

/** Adds a snapshot that is pending until `complete`. */
export function addSnapshot(region: Region, { tags, ...fields }: NewSnapshot): Snapshot {
  return region.snapshots.add({
    ...{ volumeId: NO_VOLUME, ownerId: ACCOUNT, sha256: undefined, ...fields },
    ...region.newResource(KINDS.snapshot, tags),
    kmsKeyId: fields.encrypted ? KMS_KEY_ARN : undefined,
    ...{ state: 'pending', completedAt: undefined, stateMessage: undefined },
  });
}

/** Lets a snapshot complete, or fail, after the time that AWS takes. */
export function completeLater(region: Region, snapshot: Snapshot, call: AwsCall | undefined): void {
  const failure = call && faultOf(call, 'task-failure');
  region.world.timeline.at(region.now + region.settings.resourceMs, (at) => {
    snapshot.state = failure === undefined ? 'completed' : 'error';
    snapshot.stateMessage = failure?.message;
    snapshot.completedAt = at;
  });
}

export function copySnapshot(
  region: Region,
  from: Snapshot,
  fields: Pick<NewSnapshot, 'description' | 'encrypted' | 'tags'>,
  call: AwsCall,
): Snapshot {
  const snapshot = addSnapshot(region, { sizeGib: from.sizeGib, sha256: from.sha256, ...fields });
  completeLater(region, snapshot, call);
  return snapshot;
}

/** Returns a snapshot of our account. Throws if there is none. */
export function requireOwnSnapshot(region: Region, id: string, { asOf }: Pick<AwsCall, 'asOf'>): Snapshot {
  const snapshot = region.snapshots.one(id, asOf);
  if (snapshot.ownerId === ACCOUNT) return snapshot;
  throw new AwsError('InvalidSnapshot.NotFound', `The snapshot '${id}' does not exist.`);
}

/** Deletes a snapshot. Throws if it is unknown, not ours, or used by an image. */
export function deleteSnapshot(region: Region, id: string, call: AwsCall): void {
  const snapshot = requireOwnSnapshot(region, id, call);
  const user = region.images.all().find(({ volumes }) => volumes.some(({ snapshotId }) => snapshotId === id));
  if (user !== undefined) {
    throw new AwsError('InvalidSnapshot.InUse', `The snapshot ${id} is currently in use by ${user.id}`);
  }
  region.snapshots.remove(snapshot, call.now);
}

const FILTERS: Filterable<Snapshot> = {
  'snapshot-id': ({ id }) => id,
  status: ({ state }) => state,
  description: ({ description }) => description,
  'owner-id': ({ ownerId }) => ownerId,
  'volume-id': ({ volumeId }) => volumeId,
  'volume-size': ({ sizeGib }) => String(sizeGib),
  encrypted: ({ encrypted }) => String(encrypted),
};

export function snapshotHandlers(regionOf: (call: AwsCall) => Region, regionNamed: (name: string) => Region): Handlers {
  return {
    DescribeSnapshots: operation<DescribeSnapshotsRequest, DescribeSnapshotsResult>((input, call) => {
      const region = regionOf(call);
      refusePaging(input.SnapshotIds, input, 'snapshotSet');
      const { SnapshotIds: ids, OwnerIds: owners } = input;
      const ours =
        ids === undefined
          ? region.snapshots.seen(call.asOf).filter(({ ownerId }) => ownerId === ACCOUNT)
          : ids.map((id) => requireOwnSnapshot(region, id, call));
      const owned = ours.filter(() => owners?.some((owner) => owner === 'self' || owner === ACCOUNT) ?? true);
      const found = filtered(owned, input.Filters, FILTERS);
      const { items, NextToken } = pageOf(found, input, region.settings.pageSize);
      return { Snapshots: items.map(shown), NextToken };
    }),
    CreateSnapshot: operation<CreateSnapshotRequest, ShownSnapshot>((input, call) => {
      const region = regionOf(call);
      const tags = tagsByType(input.TagSpecifications, ['snapshot']).get('snapshot');
      if (tags !== undefined) call.authorize('ec2:CreateTags');
      const { id: volumeId, sizeGib, encrypted } = region.volumes.one(input.VolumeId ?? '', call.asOf);
      const snapshot = addSnapshot(region, {
        description: input.Description ?? '',
        sizeGib,
        encrypted,
        volumeId,
        tags,
      });
      completeLater(region, snapshot, call);
      return shown(snapshot);
    }),
    CopySnapshot: operation<CopySnapshotRequest, CopySnapshotResult>((input, call) => {
      const region = regionOf(call);
      const tags = tagsByType(input.TagSpecifications, ['snapshot']).get('snapshot');
      if (tags !== undefined) call.authorize('ec2:CreateTags');
      const from = regionNamed(input.SourceRegion ?? '').snapshots.one(input.SourceSnapshotId ?? '', call.asOf);
      if (from.state !== 'completed') throw new AwsError('IncorrectState', `The snapshot ${from.id} is not completed`);
      const description = input.Description ?? '';
      const snapshot = copySnapshot(
        region,
        from,
        { description, encrypted: input.Encrypted ?? from.encrypted, tags },
        call,
      );
      return { SnapshotId: snapshot.id, Tags: shownTags(snapshot.tags) };
    }),
    DeleteSnapshot: operation<DeleteSnapshotRequest, object>((input, call) => {
      deleteSnapshot(regionOf(call), input.SnapshotId ?? '', call);
      return {};
    }),
  };
}

function shown(snapshot: Snapshot): ShownSnapshot {
  return {
    ...{
      SnapshotId: snapshot.id,
      VolumeId: snapshot.volumeId,
      VolumeSize: snapshot.sizeGib,
      OwnerId: snapshot.ownerId,
    },
    ...{ State: snapshot.state, Progress: snapshot.state === 'completed' ? '100%' : '0%' },
    ...(snapshot.stateMessage === undefined ? {} : { StateMessage: snapshot.stateMessage }),
    ...{ Description: snapshot.description, StartTime: new Date(snapshot.createdAt), StorageTier: 'standard' },
    ...{ Encrypted: snapshot.encrypted, KmsKeyId: snapshot.kmsKeyId, Tags: shownTags(snapshot.tags) },
    ...(snapshot.completedAt === undefined ? {} : { CompletionTime: new Date(snapshot.completedAt) }),
  };
}
