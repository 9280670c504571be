/** Codes of the errors that every service has, each in its own words. */

import { AwsError } from './aws-error.js';
import type { Service } from './service-model.js';
import type { Problem } from './values.js';

type Refusal = 'unsigned' | 'unknownKey' | 'wrongSignature' | 'expired' | 'skewed' | 'throttled' | 'internal';
type Code = readonly [code: string, status: number];

const JSON_CODES: Readonly<Record<Refusal, Code>> = {
  unsigned: ['MissingAuthenticationTokenException', 403],
  unknownKey: ['UnrecognizedClientException', 400],
  wrongSignature: ['InvalidSignatureException', 400],
  expired: ['ExpiredTokenException', 400],
  skewed: ['InvalidSignatureException', 400],
  throttled: ['ThrottlingException', 400],
  internal: ['InternalFailure', 500],
};

const CODES: Readonly<Record<Service, Readonly<Record<Refusal, Code>>>> = {
  ec2: {
    unsigned: ['MissingAuthenticationToken', 403],
    unknownKey: ['AuthFailure', 401],
    wrongSignature: ['AuthFailure', 401],
    expired: ['RequestExpired', 400],
    skewed: ['RequestExpired', 400],
    throttled: ['RequestLimitExceeded', 503],
    internal: ['InternalError', 500],
  },
  s3: {
    unsigned: ['AccessDenied', 403],
    unknownKey: ['InvalidAccessKeyId', 403],
    wrongSignature: ['SignatureDoesNotMatch', 403],
    expired: ['ExpiredToken', 400],
    skewed: ['RequestTimeTooSkewed', 403],
    throttled: ['SlowDown', 503],
    internal: ['InternalError', 500],
  },
  sts: {
    unsigned: ['MissingAuthenticationToken', 403],
    unknownKey: ['InvalidClientTokenId', 403],
    wrongSignature: ['SignatureDoesNotMatch', 403],
    expired: ['ExpiredToken', 403],
    skewed: ['SignatureDoesNotMatch', 403],
    throttled: ['Throttling', 400],
    internal: ['InternalFailure', 500],
  },
  sqs: { ...JSON_CODES, unknownKey: ['InvalidClientTokenId', 403], expired: ['ExpiredToken', 403] },
  ebs: { ...JSON_CODES, throttled: ['RequestThrottledException', 400], internal: ['InternalServerException', 500] },
  'service-quotas': {
    ...JSON_CODES,
    throttled: ['TooManyRequestsException', 400],
    internal: ['ServiceException', 500],
  },
};

const MESSAGES: Readonly<Record<Refusal, string>> = {
  unsigned: 'Request is missing Authentication Token',
  unknownKey: 'AWS was not able to validate the provided access credentials',
  wrongSignature: 'The request signature we calculated does not match the signature you provided.',
  expired: 'The security token included in the request is expired',
  skewed: 'Signature expired: the difference between the request time and the current time is too large.',
  throttled: 'Request limit exceeded.',
  internal: 'An internal error has occurred',
};

export function refusal(service: Service, kind: Refusal): AwsError {
  const [code, status] = CODES[service][kind];
  return new AwsError(code, MESSAGES[kind], status, service === 'ebs' && kind === 'throttled' ? THROTTLED_EBS : {});
}

const THROTTLED_EBS = { Reason: 'ACCOUNT_THROTTLED' };

/** Returns the error for an action that no policy allows. */
export function unauthorized(service: Service, action: string, principal: string): AwsError {
  const message = `User: ${principal} is not authorized to perform: ${action}`;
  if (service === 'ec2') {
    const text = `You are not authorized to perform this operation. ${message}`;
    return new AwsError('UnauthorizedOperation', text, 403);
  }
  const codes = { s3: 'AccessDenied', sts: 'AccessDenied', sqs: 'AccessDenied' };
  const code = service in codes ? codes[service as keyof typeof codes] : 'AccessDeniedException';
  return new AwsError(code, message, service === 'service-quotas' ? 400 : 403);
}

/** Returns the error for an input that does not fit the definitions. */
export function refusedInput(service: Service, { kind, message }: Problem): AwsError {
  if (service === 'ec2') {
    const codes = {
      ...{ missing: 'MissingParameter', unknown: 'UnknownParameter' },
      ...{ type: 'InvalidParameterValue', constraint: 'InvalidParameterValue' },
    };
    return new AwsError(codes[kind], message);
  }
  if (service === 's3') {
    if (kind === 'unknown' && message.startsWith('The query')) return new AwsError('NotImplemented', message, 501);
    return new AwsError(kind === 'constraint' ? 'InvalidArgument' : 'MalformedXML', message);
  }
  if (service === 'ebs')
    return new AwsError('ValidationException', message, 400, { Reason: 'INVALID_PARAMETER_VALUE' });
  if (service === 'sqs') {
    return new AwsError(kind === 'missing' ? 'MissingParameter' : 'InvalidParameterValue', message);
  }
  return new AwsError(service === 'sts' ? 'ValidationError' : 'IllegalArgumentException', message);
}
