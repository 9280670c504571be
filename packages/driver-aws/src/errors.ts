/**
 * Translates AWS's failures into errors of core: codes of the services, connection failures, and login failures.
 *
 * Source: "Error codes for the Amazon EC2 API", and the lists of errors of S3, EBS direct, SQS and Service Quotas.
 */

import {
  AuthError,
  connectionError,
  driverError,
  errorOfAnswer,
  isDriverError,
  lineOf,
  networkCauseOf,
  TransientError,
  type Attempted,
  type DriverError,
  type DriverErrorCode,
  type ErrorAnswer,
  type ErrorRule,
  type ErrorTable,
} from '@nodepool/core';

/** Wait after a throttled call (ms). AWS specifies none; its buckets refill within seconds. */
const RETRY_AFTER_MS = 2000;

/** An error answer, as Amazon's libraries throw it. */
export interface AwsFailure extends Error {
  readonly $fault?: 'client' | 'server';
  readonly $metadata?: { readonly httpStatusCode?: number; readonly requestId?: string };
  /** Host of the request; see `sdk.ts`. */
  readonly $host?: string;
  readonly $response?: { readonly statusCode: number; readonly headers: Record<string, string> };
}

const CAPACITY = codes(
  'Insufficient(Instance|Host|Volume|Address|ReservedInstances?)?Capacity(OnHost)?',
  'InsufficientFreeAddressesInSubnet',
  '(Incompatible|Unavailable)HostRequirements',
  'NoCapacity|CapacityNotAvailable|ReservationCapacityExceeded|UnfulfillableCapacity|SpotMaxPriceTooLow',
  // Types and volumes that one zone lacks.
  'Unsupported|UnsupportedHostConfiguration|VolumeTypeNotAvailableInZone',
);
const QUOTA = codes(
  '.*LimitExceeded(Exception)?',
  'Max(SpotInstance|SpotFleetRequest|Fleet)CountExceeded',
  'VolumeIOPSLimit|ResourceCountExceeded|ServiceQuotaExceededException|SnapshotCreationPerVolumeRateExceeded',
);
const THROTTLED = codes(
  '(Client)?RequestThrottled(Exception)?|RequestLimitExceeded|Throttling(Exception)?|EC2ThrottledException',
  'SlowDown|TooManyRequestsException|BandwidthLimitExceeded|OverLimit|KmsThrottled',
);
const CREDENTIALS =
  /^(AuthFailure|InvalidClientTokenId|UnrecognizedClientException|ExpiredToken|ExpiredTokenException|InvalidAccessKeyId|SignatureDoesNotMatch|InvalidSignatureException|MissingAuthenticationToken|IncompleteSignature|InvalidToken|TokenRefreshRequired|NotSignedUp|OptInRequired)$/;
const PERMISSION = /^(UnauthorizedOperation|AccessDenied|AccessDeniedException|Client\.UnauthorizedOperation)$/;
const SKEW = /^(RequestExpired|RequestTimeTooSkewed|InvalidSecurity\.RequestHasExpired)$/;
const TRANSIENT =
  /^(InternalError|InternalFailure|InternalServerException|InternalServerError|Unavailable|ServiceUnavailable|ServiceException|RequestTimeout|RequestTimeoutException|ServerInternal|DependencyServiceException|NoSuchResourceException)$/;
const CONFLICT =
  /^(Incorrect\w*State|InvalidState(Transition)?|InvalidInstanceState|InvalidHostState|ConcurrentTagAccess|DependencyViolation|ResourceInUse|VolumeInUse|InvalidSnapshot\.InUse|InvalidNetworkInterface\.InUse|OperationAborted|ConflictException|Client\.InvalidHost\.Occupied|InvalidHost\.Occupied|HostInUse|OperationNotPermitted)$/;
/** Resources that nodes and uploads consist of. */
const NOT_FOUND =
  /^(InvalidInstanceID\.NotFound|InvalidInstanceID\.Malformed|InvalidVolume\.NotFound|InvalidSnapshot\.NotFound|InvalidNetworkInterfaceID\.NotFound|InvalidAllocationID\.NotFound|InvalidAddress(ID)?\.NotFound|InvalidHostID\.NotFound|InvalidHostId\.NotFound|InvalidAMIID\.(NotFound|Unavailable)|InvalidConversionTaskId|InvalidConversionTaskId\.NotFound|NoSuchKey|NoSuchUpload|ResourceNotFoundException)$/;

/** Codes about a value in the configuration, with the key that it comes from. */
const CONFIGURED: readonly (readonly [code: RegExp, key: string])[] = [
  [/^InvalidKeyPair\./, '"key-name" of the label'],
  [/^InvalidSubnetI[dD]\./, '"subnet-id" or "subnet-ids" of the pool'],
  [
    /^InvalidGroup(Id)?\.|^InvalidSecurityGroupI[dD]\.|^SecurityGroupsPer\w+LimitExceeded$/,
    '"security-group-id" or "security-group-ids" of the pool',
  ],
  [/^InvalidAMI(ID|Id|Name)?\.Malformed|^InvalidAMIAttributeItemValue/, '"image-id" of the cloud image'],
  [/^InvalidInstanceType$/, '"instance-type" of the label'],
  [/^InvalidIamInstanceProfile|^InvalidIAMInstanceProfile/, '"iam-instance-profile" of the label'],
  [/^InvalidUserData/, '"userdata" of the label'],
  [/^(InvalidZone|InvalidAvailabilityZone)/, '"availability-zone" of the pool'],
  [/^(InvalidKmsKey|KMSKeyNotAccessible|InvalidKMSKey|CustomerKeyHasBeenRevoked)/, '"kms-key-id" of the label'],
  [/^(NoSuchBucket|InaccessibleStorageLocation)$/, '"bucket-name" of the provider'],
  [/NonExistentQueue$|^QueueDoesNotExist$/, '"interruption-queue" of the provider'],
  [
    /^(VPCIdNotSpecified|DefaultVpcDoesNotExist|DefaultSubnetDoesNotExistInAZ|MissingInput)$/,
    '"subnet-id" of the pool',
  ],
];

/** Texts about such a value, whose codes say less. */
const CONFIGURED_TEXTS: readonly (readonly [text: RegExp, key: string])[] = [
  [/iam ?instance ?profile/i, '"iam-instance-profile" of the label'],
  [/security ?group.+subnet/i, '"security-group-id" and "subnet-id" of the pool'],
  [/security ?group|\bgroup(Id|Name|Set)?\b/i, '"security-group-id" or "security-group-ids" of the pool'],
  [/subnet/i, '"subnet-id" or "subnet-ids" of the pool'],
  [/availability ?zone/i, '"availability-zone" of the pool'],
  [/instance ?type/i, '"instance-type" of the label'],
  [/key ?(pair|name)/i, '"key-name" of the label'],
  [/smaller than snapshot|volume ?size/i, '"volume-size" of the label'],
  [/\b(iops|throughput)\b/i, '"iops" and "throughput" of the label'],
];
const IMPRECISE = /^Invalid(Parameter(Value|Combination)?|BlockDeviceMapping|Request|Input)$/;

const CONFIGURATION = codes(
  'TagLimitExceeded|FilterLimitExceeded|MissingParameter|UnknownParameter|MalformedParameter|ValidationE(xception|rror)',
  'Unsupported\\w+|.*NotSupported(Exception)?|\\w+Unsupported(\\.\\w+)?|ZonesMismatched|DiskImageSizeTooLarge',
  'BlockedPublicAccess|TagPolicyViolation|Unknown(VolumeType|PrincipalType)(\\.\\w+)?',
  // Other values that EC2 refuses; these are about the call itself.
  'Invalid(?!(Action|QueryParameter|PaginationToken|NextToken|MaxResults|ClientToken)$|AMIName.Duplicate)[\\w.]+',
);

const IAM = '; the page of the driver aws lists the actions that the IAM policy must allow';

const RULES: readonly ErrorRule[] = [
  { code: THROTTLED, error: 'throttled' },
  // AWS has codes of credentials for rights of the account, too.
  {
    code: /^AuthFailure\.ServiceLinkedRoleCreationNotPermitted$/,
    error: 'configuration',
    hint: '; create the service-linked role of EC2 Spot or EC2 Fleet in the account',
  },
  { code: /^AuthFailure$/, text: /image/i, error: 'configuration', hint: '; check "image-id" of the cloud image' },
  { code: /^OptInRequired$/, text: /marketplace/i, error: 'configuration', hint: '; subscribe to the image' },
  { code: CREDENTIALS, error: 'auth' },
  // EC2 has the same code for requests whose time is wrong.
  { code: /^RequestExpired$/, text: /security token/i, error: 'auth' },
  { code: PERMISSION, error: 'auth', hint: IAM },
  { code: SKEW, error: 'transient', outcome: 'not-applied', hint: '; is the clock of this host right?' },
  { code: /^InvalidFleetConfig/, text: /not supported in your requested Availability Zone/i, error: 'capacity' },
  { code: CAPACITY, error: 'capacity' },
  // `imageError` names the key of a configured image; an uploaded image has none, and can be deleted.
  { code: /^InvalidAMIID\./, error: 'not-found' },
  { code: NOT_FOUND, error: 'not-found' },
  ...CONFIGURED.map(([code, key]): ErrorRule => ({ code, error: 'configuration', hint: `; check ${key}` })),
  ...CONFIGURED_TEXTS.map(([text, key]): ErrorRule => ({
    code: IMPRECISE,
    text,
    error: 'configuration',
    hint: `; check ${key}`,
  })),
  // The driver creates templates itself: another program deleted it, or EC2 does not know it yet.
  { code: /^InvalidLaunchTemplate(Id|Name)\.(Version)?NotFound/, error: 'conflict' },
  { code: /^(Tag|Filter)LimitExceeded$/, error: 'configuration' },
  { code: QUOTA, error: 'quota' },
  // The instances of an earlier call with this client token have ended.
  { code: /^IdempotentInstanceTerminated$/, error: 'instance-failed' },
  // An earlier call with this client token may have had an effect.
  { code: /^IdempotentParameterMismatch$/, error: 'conflict', outcome: 'unknown' },
  { code: TRANSIENT, error: 'transient' },
  { code: CONFLICT, error: 'conflict' },
  { code: CONFIGURATION, error: 'configuration' },
  { code: /^(PendingVerification|Blocked|InvalidAMIName\.Duplicate)$/, error: 'refused' },
];

const ERRORS: ErrorTable = { vendor: 'AWS', retryAfterMs: RETRY_AFTER_MS, rules: RULES };

/** Returns the `DriverError` for a rejection of Amazon's libraries. */
export function errorOf(error: unknown, attempted: Attempted): DriverError {
  if (isDriverError(error)) return error;
  const failure = error as AwsFailure;
  const status = failure.$metadata?.httpStatusCode ?? failure.$response?.statusCode;
  const { $host: host } = failure;
  if (!(error instanceof Error) || status === undefined) return connectionError(attempted, { cause: error, to: host });
  if (status < 300) {
    const outcome = attempted.changesSomething ? 'unknown' : 'not-applied';
    const message = `${attempted.operation}: the answer${of(host)} is none of AWS (${lineOf(error.message)})`;
    return new TransientError(message, { outcome, cause: error });
  }
  const { code, text } = detailOf(failure);
  // Other answers are those of a proxy: they have no request id.
  const summary = failure.$metadata?.requestId === undefined ? `${text} (answer${of(host)})` : `${code ?? ''}: ${text}`;
  const to = failure.$response?.headers['location'];
  if (status < 400) {
    const outcome = attempted.changesSomething ? 'unknown' : 'not-applied';
    const message = `${attempted.operation}: ${status} from ${host ?? 'AWS'} redirects to ${to ?? 'no address'}`;
    return new TransientError(message, { outcome, cause: error });
  }
  return errorOfAnswer(ERRORS, { status, code, text, summary, cause: error }, attempted);
}

function of(host: string | undefined): string {
  return host === undefined ? '' : ` of ${host}`;
}

/** Returns the `DriverError` for an error inside an answer, e.g. of a fleet, which counts like one that was thrown. */
export function errorOfCode(operation: string, code: string, text: string, cause?: unknown): DriverError {
  const attempted: Attempted = { operation, changesSomething: true, now: 0 };
  const failure = errorOfAnswer(ERRORS, { status: 400, code, text: lineOf(text), cause }, attempted);
  return failure.outcome === 'not-applied'
    ? failure
    : driverError(failure.code, failure.message, { outcome: 'not-applied', cause });
}

/** Returns the code of core for a state reason of an instance, e.g. `Server.InsufficientInstanceCapacity`. */
export function codeOfReason(reason: string): DriverErrorCode | undefined {
  const code = reason.replace(/^(Server|Client)\./, '');
  if (CAPACITY.test(code)) return 'capacity';
  return QUOTA.test(code) ? 'quota' : undefined;
}

/** Returns AWS's code of an error; undefined if it has none. The cause in an error of core has the code as its name. */
export function codeIn(error: unknown): string | undefined {
  const cause = isDriverError(error) ? error.cause : error;
  return cause instanceof Error ? cause.name.replace(/^(Server|Client)\./, '') : undefined;
}

/** Returns true if AWS refused the credentials rather than the action. */
export function hasRefusedCredentials(error: DriverError): boolean {
  return error.code === 'auth' && (CREDENTIALS.test(codeIn(error) ?? '') || codeIn(error) === 'RequestExpired');
}

/** Returns true if the account lacks the right to make a call. */
export function lacksPermission(error: unknown): boolean {
  return isDriverError(error) && error.code === 'auth' && PERMISSION.test(codeIn(error) ?? '');
}

/** Returns the `DriverError` for a failed login, which precedes any call to the cloud. */
export function loginErrorOf(error: unknown, attempted: Attempted): DriverError {
  const failure = error as AwsFailure;
  const said = error instanceof Error ? lineOf(error.message) : String(error);
  const outcome = 'not-applied';
  const status = failure.$metadata?.httpStatusCode;
  if (networkCauseOf(error) !== undefined) return connectionError(attempted, { cause: error });
  if (status !== undefined && status >= 500) {
    return new TransientError(`${attempted.operation}: ${status} ${said}`, { cause: error, outcome });
  }
  const remedy = 'check the credentials of the environment, "profile-name", or "web-identity-token-file"';
  return new AuthError(`${attempted.operation}: ${said}; ${remedy}`, { cause: error, outcome });
}

/** AWS writes some codes with the prefix `Client.` or `Server.`, and some as the name of a shape. */
function detailOf(failure: AwsFailure): Pick<ErrorAnswer, 'code' | 'text'> {
  const text = lineOf(failure.message === '' ? 'AWS gives no reason' : failure.message);
  return { code: failure.name.replace(/^(Server|Client)\./, ''), text };
}

/** Returns an expression for codes that one of the patterns describes completely. */
function codes(...patterns: readonly string[]): RegExp {
  return new RegExp(`^(${patterns.join('|')})$`);
}
