/** Operations of STS. */

import type {
  AssumeRoleRequest,
  AssumeRoleResponse,
  AssumeRoleWithWebIdentityRequest,
  AssumeRoleWithWebIdentityResponse,
  GetCallerIdentityResponse,
  GetSessionTokenRequest,
  GetSessionTokenResponse,
  Credentials,
} from '@aws-sdk/client-sts';
import type { Account, KnownCredentials } from './account.js';
import { operation, type Handlers } from './call.js';
import { AwsError } from './protocol/aws-error.js';
import { ACCOUNT, ROLE_ARN } from './settings.js';

const DEFAULT_SECONDS = 3600;
const MIN_SECONDS = 900;
const MAX_SECONDS = 43_200;

export function stsHandlers(account: Account): Handlers {
  return {
    GetCallerIdentity: operation<object, GetCallerIdentityResponse>((_input, { principal }) => ({
      ...{ Account: ACCOUNT, Arn: principal.arn, UserId: principal.userId },
    })),
    GetSessionToken: operation<GetSessionTokenRequest, GetSessionTokenResponse>((input, { principal }) => ({
      Credentials: shown(account.issue(lifetimeOf(input.DurationSeconds), principal)),
    })),
    AssumeRole: operation<AssumeRoleRequest, AssumeRoleResponse>((input) => {
      if (input.RoleArn !== ROLE_ARN) {
        throw new AwsError(
          'AccessDenied',
          `User is not authorized to perform: sts:AssumeRole on ${input.RoleArn}`,
          403,
        );
      }
      const role = account.roleSession(input.RoleSessionName ?? '');
      const issued = account.issue(lifetimeOf(input.DurationSeconds), role);
      return { Credentials: shown(issued), AssumedRoleUser: { Arn: role.arn, AssumedRoleId: role.userId } };
    }),
    AssumeRoleWithWebIdentity: operation<AssumeRoleWithWebIdentityRequest, AssumeRoleWithWebIdentityResponse>(
      (input) => {
        if (!account.isWebIdentity(input.WebIdentityToken ?? '')) {
          throw new AwsError('InvalidIdentityToken', 'The ID Token provided is not a valid JWT.');
        }
        if (input.RoleArn !== ROLE_ARN) {
          throw new AwsError('AccessDenied', 'Not authorized to perform sts:AssumeRoleWithWebIdentity', 403);
        }
        const role = account.roleSession(input.RoleSessionName ?? '');
        const issued = account.issue(lifetimeOf(input.DurationSeconds), role);
        return {
          ...{ Credentials: shown(issued), AssumedRoleUser: { Arn: role.arn, AssumedRoleId: role.userId } },
          SubjectFromWebIdentityToken: 'nodepool',
        };
      },
    ),
  };
}

function lifetimeOf(seconds = DEFAULT_SECONDS): number {
  if (seconds < MIN_SECONDS || seconds > MAX_SECONDS) {
    throw new AwsError(
      'ValidationError',
      `The requested DurationSeconds ${seconds} is not between ${MIN_SECONDS} and ${MAX_SECONDS}`,
    );
  }
  return seconds * 1000;
}

function shown({ accessKeyId, secretAccessKey, sessionToken, expiresAt }: KnownCredentials): Credentials {
  return {
    ...{ AccessKeyId: accessKeyId, SecretAccessKey: secretAccessKey, SessionToken: sessionToken },
    Expiration: new Date(expiresAt ?? 0),
  };
}
