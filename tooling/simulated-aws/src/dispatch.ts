/** The way of a call: signature, rights, limits of calls, input, operation, answer. */

import type { Answer, CloudCall, RequestContext, VendorForm } from '@nodepool/simulated-cloud';
import type { RandomSource } from '@nodepool/core';
import { Account, type Principal } from './account.js';
import { actionOf } from './actions.js';
import { faultOf, type AwsCall, type Handlers } from './call.js';
import type { ThrottledInput } from './throttle.js';
import type { AwsApiCall, AwsFault } from './faults.js';
import { answerOf, errorAnswer } from './protocol/answers.js';
import { AwsError } from './protocol/aws-error.js';
import { readJson } from './protocol/json.js';
import { readQuery } from './protocol/query-input.js';
import { requestOf, SIGNED_NAMES, type AwsRequest } from './protocol/request.js';
import { readRest } from './protocol/rest.js';
import { refusal, refusedInput, unauthorized } from './protocol/service-errors.js';
import type { Operation, Service } from './protocol/service-model.js';
import { sha256, signatureOf, timeOf } from './protocol/signature.js';
import { checkConstraints, InputProblem, isStructure, type Structure } from './protocol/values.js';
import type { Region, World } from './region.js';
import { REGIONS } from './settings.js';

export type AwsContext = RequestContext<AwsFault>;

export interface Dispatched {
  readonly world: World;
  readonly random: RandomSource;
  readonly account: Account;
  readonly regionNamed: (name: string) => Region;
  readonly handlers: Readonly<Record<Service, Handlers>>;
}

/** Half of an answer of another program. */
const GARBAGE = '<?xml version="1.0"?>\n<html><head><title>Service Unavai';

export class Dispatcher {
  constructor(private readonly cloud: Dispatched) {}

  /** The form of answers outside of operations. */
  readonly form: VendorForm<AwsFault> = {
    jsonType: 'application/json',
    noRoute: (context) => this.errorAnswer(context, new AwsError('InvalidAction', 'There is no such path', 404)),
    fault: ({ code, message = `The simulation answers with ${code}`, status }, context) =>
      this.errorAnswer(context, new AwsError(code, message, status)),
    failure: (status, message, context) => this.errorAnswer(context, new AwsError('InternalError', message, status)),
  };

  /** Returns the call with the name of its operation, e.g. `ec2.RunInstances`. */
  describe(call: CloudCall, context: AwsContext): AwsApiCall {
    const { service, operationName, claim, form } = requestOf(context);
    return { ...call, operation: `${service}.${operationName}`, region: claim?.region, parameters: form };
  }

  async handle(context: AwsContext): Promise<Answer> {
    const request = requestOf(context);
    const requestId = uuid(this.cloud.random.uuidHex());
    try {
      const answer = await this.perform(request, context, requestId);
      return faultOf(context, 'garbage') === undefined ? answer : { status: 200, body: GARBAGE, type: 'text/xml' };
    } catch (error) {
      if (error instanceof InputProblem) {
        return errorAnswer(request, refusedInput(request.service, error.problem), requestId);
      }
      if (error instanceof AwsError) return errorAnswer(request, error, requestId);
      throw error;
    }
  }

  private async perform(request: AwsRequest, context: AwsContext, requestId: string): Promise<Answer> {
    const { service, operation, operationName } = request;
    const { world } = this.cloud;
    world.timeline.settle();
    for (const kind of ['throttle', 'expired-credentials'] as const) {
      if (faultOf(context, kind) !== undefined) {
        throw refusal(service, kind === 'throttle' ? 'throttled' : 'expired');
      }
    }
    const principal = this.verify(request, context);
    const handler = operation === undefined ? undefined : this.cloud.handlers[service][operation.name];
    if (operation === undefined || handler === undefined) throw unknownOperation(service, operationName);
    const authorize = (action: string): void => {
      if (!this.cloud.account.permissions.permits(action)) throw unauthorized(service, action, principal.arn);
    };
    const action = actionOf(service, operation.name);
    if (action !== undefined) authorize(action);
    const input = inputOf(request, operation, context.body);
    const region = request.claim?.region ?? 'us-east-1';
    if (service === 'ec2') this.throttle(region, operation.name, input);
    if (input['DryRun'] === true) {
      throw new AwsError('DryRunOperation', 'Request would have succeeded, but DryRun flag is set.', 412);
    }
    const now = world.clock.now();
    const lag = faultOf(context, 'lag')?.ms ?? world.settings.readLagMs;
    const call: AwsCall = {
      ...{ operation: operation.name, region, principal, requestId, now, asOf: now - lag, authorize },
      ...{ faults: context.faults, headers: request.headers, body: context.body, signal: context.signal },
    };
    return answerOf(request, operation, await handler(input, call), requestId);
  }

  /** Returns who signed the request. Throws if the signature is missing, wrong or expired. */
  private verify(request: AwsRequest, context: AwsContext): Principal {
    const { service, claim, operationName } = request;
    const { account, world } = this.cloud;
    if (claim === undefined) {
      if (operationName === 'AssumeRoleWithWebIdentity') return Account.anonymous;
      throw refusal(service, 'unsigned');
    }
    const { code, status } = refusal(service, 'wrongSignature');
    if (SIGNED_NAMES[claim.service] !== service) {
      throw new AwsError(code, `Credential should be scoped to correct service: '${service}'.`, status);
    }
    if (!REGIONS.has(claim.region)) {
      throw new AwsError(code, `Credential should be scoped to a valid region, not '${claim.region}'.`, status);
    }
    const credentials = account.find(claim.accessKeyId);
    if (credentials === undefined || credentials.sessionToken !== claim.sessionToken)
      throw refusal(service, 'unknownKey');
    if (account.isExpired(credentials)) throw refusal(service, 'expired');
    const skew = Math.abs(timeOf(claim) - world.clock.now());
    if (!(skew <= world.settings.maxSkewMs) || !claim.time.startsWith(claim.day)) throw refusal(service, 'skewed');
    if (signatureOf(context, claim, credentials.secretAccessKey) !== claim.signature) {
      throw refusal(service, 'wrongSignature');
    }
    const declared = request.headers['x-amz-content-sha256'];
    if (declared !== undefined && /^[0-9a-f]{64}$/.test(declared) && declared !== sha256(context.body)) {
      const message = `The provided 'x-amz-content-sha256' header does not match what was computed.`;
      throw new AwsError('XAmzContentSHA256Mismatch', message);
    }
    return credentials;
  }

  private throttle(region: string, operation: string, input: ThrottledInput): void {
    if (!this.cloud.world.settings.throttles) return;
    const { throttle } = this.cloud.regionNamed(region);
    if (!throttle.takeCall(operation, input)) throw refusal('ec2', 'throttled');
  }

  private errorAnswer(context: AwsContext, error: AwsError): Answer {
    return errorAnswer(requestOf(context), error, uuid(this.cloud.random.uuidHex()));
  }
}

function inputOf(request: AwsRequest, operation: Operation, body: Buffer): Structure {
  const { model, service, form, rest } = request;
  const { protocol, apiVersion } = model.metadata;
  const { input: ref } = operation;
  if (protocol === 'ec2' || protocol === 'query') {
    const version = form.get('Version');
    if (version !== apiVersion) {
      throw new AwsError('NoSuchVersion', `The requested version (${version}) of service ${service} does not exist`);
    }
    return readQuery(model, ref, form);
  }
  if (protocol === 'json') {
    if (ref === undefined) return {};
    const value = readJson(model, ref, jsonIn(body), '');
    if (!isStructure(value)) throw new InputProblem({ kind: 'type', path: '', message: 'The body is not an object' });
    checkConstraints(model, ref, value, '');
    return value;
  }
  const value = readRest(model, operation, rest);
  if (ref !== undefined) checkConstraints(model, ref, value, '');
  return value;
}

function jsonIn(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8')) as unknown;
  } catch {
    throw new InputProblem({ kind: 'type', path: '', message: 'The body is not JSON' });
  }
}

function unknownOperation(service: Service, name: string): AwsError {
  if (service === 's3') {
    const message = 'A header or query you provided implies functionality that is not implemented';
    return new AwsError('NotImplemented', message, 501);
  }
  const code = service === 'service-quotas' || service === 'ebs' ? 'UnknownOperationException' : 'InvalidAction';
  return new AwsError(code, `The action ${name} is not valid for this web service.`, service === 'ebs' ? 404 : 400);
}

function uuid(hex: string): string {
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
