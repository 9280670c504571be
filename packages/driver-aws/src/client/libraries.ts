/** Amazon's libraries, loaded at the first use of a service. Parsing a configuration does not require them. */

import type * as Credentials from '@aws-sdk/credential-providers';
import type * as Ebs from '@aws-sdk/client-ebs';
import type * as Ec2 from '@aws-sdk/client-ec2';
import type * as Quotas from '@aws-sdk/client-service-quotas';
import type * as S3 from '@aws-sdk/client-s3';
import type * as Sqs from '@aws-sdk/client-sqs';
import { createRequire } from 'node:module';

const load = createRequire(__filename);

export const loadEc2 = (): typeof Ec2 => load('@aws-sdk/client-ec2') as typeof Ec2;
export const loadS3 = (): typeof S3 => load('@aws-sdk/client-s3') as typeof S3;
export const loadEbs = (): typeof Ebs => load('@aws-sdk/client-ebs') as typeof Ebs;
export const loadQuotas = (): typeof Quotas => load('@aws-sdk/client-service-quotas') as typeof Quotas;
export const loadSqs = (): typeof Sqs => load('@aws-sdk/client-sqs') as typeof Sqs;
export const loadCredentials = (): typeof Credentials => load('@aws-sdk/credential-providers') as typeof Credentials;
