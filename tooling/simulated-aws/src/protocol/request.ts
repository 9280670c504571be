/** Finds the service and the operation that a request calls. */

import type { RequestContext } from '@nodepool/simulated-cloud';
import { restOperation, type RestRequest } from './rest.js';
import { ServiceModel, type Operation, type Service } from './service-model.js';
import { claimOf, headerText, type Claim } from './signature.js';

export interface AwsRequest {
  readonly service: Service;
  readonly model: ServiceModel;
  /** Undefined if the service has no such operation. */
  readonly operation: Operation | undefined;
  /** Name that the request gives, even of an unknown operation. */
  readonly operationName: string;
  /** Undefined if the request has no signature. */
  readonly claim: Claim | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** Parameters of the protocols `ec2` and `query`. */
  readonly form: URLSearchParams;
  readonly rest: RestRequest;
}

/** Services by their names in signatures. */
export const SIGNED_NAMES: Readonly<Record<string, Service>> = {
  ...{ ec2: 'ec2', s3: 's3', ebs: 'ebs', servicequotas: 'service-quotas', sqs: 'sqs', sts: 'sts' },
};

type Received = Pick<RequestContext, 'method' | 'url' | 'headers' | 'body'>;

const known = new WeakMap<object, AwsRequest>();

/** Returns the called operation of a request. The result is kept as long as the request's headers. */
export function requestOf(context: Received): AwsRequest {
  let request = known.get(context.headers);
  if (request === undefined) {
    request = identify(context);
    known.set(context.headers, request);
  }
  return request;
}

function identify({ method, url, headers: received, body }: Received): AwsRequest {
  const entries = Object.entries(received).map(([name, value]): [string, string] => [name, headerText(value) ?? '']);
  const headers = Object.fromEntries(entries);
  const claim = claimOf({ headers: received, url });
  const isForm = headers['content-type']?.startsWith('application/x-www-form-urlencoded') ?? false;
  const form = isForm ? new URLSearchParams(body.toString('utf8')) : url.searchParams;
  const target = headers['x-amz-target'];
  const service = serviceOf(claim, target, form, url.pathname);
  const isFormerSqs = service === 'sqs' && target === undefined;
  const model = ServiceModel.of(isFormerSqs ? 'sqs-query' : service);
  const rest = { method, path: pathOf(service, url, headers), query: url.searchParams, headers, body };
  const named = target?.split('.')[1] ?? form.get('Action') ?? '';
  const isRest = model.metadata.protocol === 'rest-json' || model.metadata.protocol === 'rest-xml';
  const operation = isRest ? restOperation(model, rest) : model.operation(named);
  return {
    ...{ service, model, operation, claim, headers, form, rest },
    operationName: operation?.name ?? (named || 'unknown'),
  };
}

function serviceOf(claim: Claim | undefined, target: string | undefined, form: URLSearchParams, path: string): Service {
  const signed = claim === undefined ? undefined : SIGNED_NAMES[claim.service];
  if (signed !== undefined) return signed;
  if (target?.startsWith('AmazonSQS.') === true) return 'sqs';
  if (target?.startsWith('ServiceQuotas') === true) return 'service-quotas';
  const action = form.get('Action');
  if (action === null) return path === '/' ? 'ec2' : 's3';
  return ServiceModel.of('sts').operation(action) === undefined ? 'ec2' : 'sts';
}

/** Returns the path; for S3, the bucket of the host name precedes it. */
function pathOf(service: Service, { pathname }: URL, headers: Readonly<Record<string, string>>): string {
  if (service !== 's3') return pathname;
  const host = (headers['host'] ?? '').replace(/:\d+$/, '');
  const bucket = /^([a-z0-9][a-z0-9.-]+)\.(?:localhost$|s3[.-])/.exec(host)?.[1];
  return bucket === undefined ? pathname : `/${bucket}${pathname}`;
}
