/** The IAM actions that operations need: https://docs.aws.amazon.com/service-authorization/latest/reference. */

import type { Service } from './protocol/service-model.js';

const PREFIXES: Readonly<Record<Service, string>> = {
  ...{ ec2: 'ec2', s3: 's3', ebs: 'ebs', 'service-quotas': 'servicequotas', sqs: 'sqs', sts: 'sts' },
};

/** Operations whose action has another name. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  's3.ListBuckets': 's3:ListAllMyBuckets',
  's3.HeadBucket': 's3:ListBucket',
  's3.ListObjects': 's3:ListBucket',
  's3.ListObjectsV2': 's3:ListBucket',
  's3.HeadObject': 's3:GetObject',
  's3.CopyObject': 's3:PutObject',
  's3.DeleteObjects': 's3:DeleteObject',
  's3.CreateMultipartUpload': 's3:PutObject',
  's3.UploadPart': 's3:PutObject',
  's3.CompleteMultipartUpload': 's3:PutObject',
  's3.ListParts': 's3:ListMultipartUploadParts',
  's3.ListMultipartUploads': 's3:ListBucketMultipartUploads',
  'sqs.DeleteMessageBatch': 'sqs:DeleteMessage',
};

/** Operations that need no rights. */
const FREE = new Set(['sts.GetCallerIdentity', 'sts.AssumeRoleWithWebIdentity', 'sts.GetSessionToken']);

/** Returns the action of an operation; undefined if it needs none. */
export function actionOf(service: Service, operation: string): string | undefined {
  const name = `${service}.${operation}`;
  return FREE.has(name) ? undefined : (OTHER_NAMES[name] ?? `${PREFIXES[service]}:${operation}`);
}
