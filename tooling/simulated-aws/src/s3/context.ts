/** Types that the operations of S3 share. */

import type { AwsCall } from '../call.js';
import type { AwsSettings } from '../settings.js';
import type { Bucket, Buckets } from './buckets.js';

export interface S3Context {
  readonly buckets: Buckets;
  readonly settings: () => AwsSettings;
  readonly newId: () => string;
}

/** An input that names an object. */
export interface Named {
  readonly Bucket?: string | undefined;
  readonly Key?: string | undefined;
}

/** Returns the bucket that a call names. */
export type BucketOf = (input: Named, call: AwsCall) => Bucket;
