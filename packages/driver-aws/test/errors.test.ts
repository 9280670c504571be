/** The meaning of AWS's codes. Source: "Error codes for the Amazon EC2 API", and the models of the other services. */

import { describe, expect, it } from '@jest/globals';
import { codeOfReason, errorOf, errorOfCode } from '../src/errors.js';

const launch = { operation: 'ec2 RunInstances', changesSomething: true, now: 0 };

function rejection(code: string, text = 'AWS says so', httpStatusCode = 400): Error {
  return Object.assign(new Error(text), { name: code, $metadata: { httpStatusCode, requestId: 'r-1' } });
}

/** Codes that launches, deletions and uploads can get, and those of S3, EBS direct and SQS, by meaning. */
const MEANINGS: Readonly<Record<string, readonly string[]>> = {
  capacity: [
    ...['InsufficientAddressCapacity', 'InsufficientCapacity', 'InsufficientCapacityOnHost'],
    ...['InsufficientFreeAddressesInSubnet', 'InsufficientHostCapacity', 'InsufficientInstanceCapacity'],
    ...['InsufficientReservedInstanceCapacity', 'InsufficientReservedInstancesCapacity', 'InsufficientVolumeCapacity'],
    ...['IncompatibleHostRequirements', 'UnavailableHostRequirements', 'ReservationCapacityExceeded'],
    ...['SpotMaxPriceTooLow', 'UnfulfillableCapacity', 'Unsupported', 'VolumeTypeNotAvailableInZone'],
  ],
  quota: [
    ...['AddressLimitExceeded', 'AttachmentLimitExceeded', 'ConcurrentSnapshotLimitExceeded', 'HostLimitExceeded'],
    ...['InstanceLimitExceeded', 'MaxFleetCountExceeded', 'MaxIOPSLimitExceeded', 'MaxSpotFleetRequestCountExceeded'],
    ...['MaxSpotInstanceCountExceeded', 'MaxTemplateLimitExceeded', 'NetworkInterfaceLimitExceeded'],
    ...['PendingSnapshotLimitExceeded', 'PrivateIpAddressLimitExceeded', 'ResourceCountExceeded'],
    ...['ResourceCountLimitExceeded', 'ResourceLimitExceeded', 'SnapshotCreationPerVolumeRateExceeded'],
    ...['SnapshotLimitExceeded', 'TargetCapacityLimitExceededException', 'VcpuLimitExceeded', 'VolumeIOPSLimit'],
    ...['VolumeLimitExceeded', 'ConcurrentLimitExceededException', 'ServiceQuotaExceededException'],
  ],
  throttled: [
    ...['EC2ThrottledException', 'RequestLimitExceeded', 'RequestThrottled', 'RequestThrottledException', 'SlowDown'],
    ...['Throttling', 'ThrottlingException', 'TooManyRequestsException', 'KmsThrottled', 'OverLimit'],
  ],
  auth: [
    ...['AccessDenied', 'AccessDeniedException', 'AuthFailure', 'ExpiredToken', 'IncompleteSignature'],
    ...['InvalidAccessKeyId', 'InvalidClientTokenId', 'MissingAuthenticationToken', 'OptInRequired'],
    ...['SignatureDoesNotMatch', 'UnauthorizedOperation', 'UnrecognizedClientException'],
  ],
  transient: [
    ...['InternalError', 'InternalFailure', 'RequestExpired', 'RequestTimeTooSkewed', 'ServiceUnavailable'],
    ...['Unavailable', 'InvalidSecurity.RequestHasExpired', 'RequestTimeout'],
  ],
  conflict: [
    ...['ConcurrentTagAccess', 'DependencyViolation', 'IdempotentParameterMismatch', 'IncorrectInstanceState'],
    ...['IncorrectModificationState', 'IncorrectState', 'InvalidHostState', 'InvalidLaunchTemplateId.NotFound'],
    ...['InvalidLaunchTemplateId.VersionNotFound', 'InvalidLaunchTemplateName.NotFoundException'],
    ...['InvalidNetworkInterface.InUse', 'InvalidSnapshot.InUse', 'InvalidState', 'InvalidStateTransition'],
    ...['OperationNotPermitted', 'VolumeInUse'],
  ],
  'not-found': [
    ...['InvalidAddressID.NotFound', 'InvalidAllocationID.NotFound', 'InvalidAMIID.NotFound'],
    ...['InvalidAMIID.Unavailable', 'InvalidConversionTaskId', 'InvalidHostID.NotFound', 'InvalidHostId.NotFound'],
    ...['InvalidInstanceID.Malformed', 'InvalidInstanceID.NotFound', 'InvalidNetworkInterfaceID.NotFound'],
    ...['InvalidSnapshot.NotFound', 'InvalidVolume.NotFound', 'NoSuchKey', 'NoSuchUpload'],
    'ResourceNotFoundException',
  ],
  configuration: [
    ...['AuthFailure.ServiceLinkedRoleCreationNotPermitted', 'BootForVolumeTypeUnsupported'],
    ...['CustomerKeyHasBeenRevoked', 'DefaultVpcDoesNotExist', 'DiskImageSizeTooLarge', 'EncryptedVolumesNotSupported'],
    ...['FilterLimitExceeded', 'InaccessibleStorageLocation', 'InstanceCreditSpecification.NotSupported'],
    ...['InvalidAMIAttributeItemValue', 'InvalidAMIName.Malformed', 'InvalidAvailabilityZone'],
    ...['InvalidBlockDeviceMapping', 'InvalidCharacter', 'InvalidFilter', 'InvalidFleetConfiguration', 'InvalidFormat'],
    ...['InvalidGroup.NotFound', 'InvalidGroupId.Malformed', 'InvalidHostConfiguration', 'InvalidID', 'InvalidInput'],
    ...['InvalidIamInstanceProfileArn.Malformed', 'InvalidInstanceAttributeValue', 'InvalidInstanceFamily'],
    ...['InvalidInstanceType', 'InvalidKey.Format', 'InvalidKeyPair.Format', 'InvalidKeyPair.NotFound'],
    ...['InvalidLaunchTemplateName.MalformedException', 'InvalidOption.Conflict', 'InvalidParameter'],
    ...['InvalidParameterCombination', 'InvalidParameterDependency', 'InvalidParameterValue'],
    ...['InvalidPlacementGroup.Unknown', 'InvalidRequest', 'InvalidSecurityGroupID.NotFound', 'InvalidSubnet'],
    ...['InvalidSubnetID.Malformed', 'InvalidSubnetID.NotFound', 'InvalidTagKey.Malformed', 'InvalidTenancy'],
    ...['InvalidUserData.Malformed', 'InvalidZone.NotFound', 'MissingInput', 'MissingParameter', 'NoSuchBucket'],
    ...['QueueDoesNotExist', 'SecurityGroupsPerInstanceLimitExceeded', 'SecurityGroupsPerInterfaceLimitExceeded'],
    ...['SnapshotCopyUnsupported.InterRegion', 'TagLimitExceeded', 'UnknownParameter', 'UnknownVolumeType'],
    ...['UnsupportedHibernationConfiguration', 'UnsupportedInstanceAttribute', 'UnsupportedInstanceTypeOnHost'],
    ...['UnsupportedOperation', 'UnsupportedTenancy', 'ValidationError', 'VPCIdNotSpecified', 'ZonesMismatched'],
  ],
  refused: ['Blocked', 'InvalidAMIName.Duplicate', 'PendingVerification'],
  'instance-failed': ['IdempotentInstanceTerminated'],
  unexpected: ['InvalidAction', 'InvalidPaginationToken', 'InvalidQueryParameter', 'MalformedQueryString'],
};

describe.each(Object.entries(MEANINGS))('%s', (meaning, codes) => {
  it.each(codes)('is the meaning of %s', (code) => {
    expect(errorOf(rejection(code), launch).code).toBe(meaning);
    expect(errorOf(rejection(`Client.${code}`), launch).code).toBe(meaning);
    expect(errorOfCode('ec2 CreateFleet', code, 'in the answer of a fleet').code).toBe(meaning);
  });
});

describe('a text of AWS decides', () => {
  it.each([
    ['AuthFailure', 'Not authorized for images: [ami-1]', 'configuration', '"image-id"'],
    ['OptInRequired', 'In order to use this AWS Marketplace product you need to subscribe', 'configuration', 'image'],
    ['RequestExpired', 'The security token included in the request is expired', 'auth', 'expired'],
    [
      'InvalidFleetConfiguration',
      'Your requested instance type (m5.large) is not supported in your requested Availability Zone (us-east-1e).',
      'capacity',
      'us-east-1e',
    ],
  ])('about %s: %s', (code, text, meaning, part) => {
    const error = errorOf(rejection(code, text), launch);
    expect(error.code).toBe(meaning);
    expect(error.message).toContain(part);
  });
});

describe('the outcome of a launch', () => {
  it.each([
    ['InsufficientInstanceCapacity', 500, 'not-applied'],
    ['VcpuLimitExceeded', 400, 'not-applied'],
    ['RequestLimitExceeded', 503, 'not-applied'],
    ['InternalError', 500, 'unknown'],
    ['ServiceUnavailable', 503, 'unknown'],
    // The call with the other parameters may have launched instances.
    ['IdempotentParameterMismatch', 400, 'unknown'],
    ['InvalidParameterValue', 400, 'not-applied'],
  ])('%s with status %d is %s', (code, status, outcome) => {
    expect(errorOf(rejection(code, 'AWS says so', status), launch)).toMatchObject({ outcome });
  });
});

it.each([
  ['Server.InsufficientInstanceCapacity', 'capacity'],
  ['Client.VolumeLimitExceeded', 'quota'],
  ['Client.InternalError', undefined],
  ['Server.InternalError', undefined],
  ['Client.UserInitiatedShutdown', undefined],
  ['Server.SpotInstanceTermination', undefined],
])('the state reason %s of an instance means %s', (reason, meaning) => {
  expect(codeOfReason(reason)).toBe(meaning);
});
