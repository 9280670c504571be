/** The client of core for all calls to AWS: rate, deadlines, metrics, errors and credentials. */

import { ApiClient, TokenSource, type ApiCall, type Call, type Clock, type Lane, type Refusal } from '@nodepool/core';
import { hasRefusedCredentials, loginErrorOf, errorOf, type AwsFailure } from '../errors.js';
import { readCredentials, type CredentialOptions } from './credentials.js';
import { Sdk } from './sdk.js';

/** Reads may be this many times as frequent as calls that change something. */
const READS_PER_CHANGE = 10;
/** Calls to the queue and to Service Quotas in progress at once. */
const OTHERS_AT_ONCE = 4;
/** Validity of credentials that do not expire (ms): a changed file is read again after it. */
const PERMANENT_MS = 3_600_000;

/** An answer of Amazon's libraries. */
interface Answer {
  readonly $metadata: { readonly requestId?: string | undefined; readonly httpStatusCode?: number | undefined };
}

export interface CallOptions {
  readonly service: 'ec2' | 's3' | 'ebs' | 'service-quotas' | 'sqs';
  /** Name of the action, e.g. `RunInstances`. */
  readonly action: string;
  /** True if the call changes something. Default: derived from the name. */
  readonly changesSomething?: boolean;
  /** True for a transfer of data, which has no rate. */
  readonly isTransfer?: boolean;
  readonly timeoutMs?: number;
  /** Reason why a successful answer is none of AWS, although it has a request id. */
  readonly foreign?: string;
}

const READING = /^(Describe|List|Get|Head|Receive)/;

export class Connection {
  readonly api: ApiClient<Sdk>;
  readonly clock: Clock;
  private readonly reads: Lane;
  private readonly others: Lane;
  private readonly source: TokenSource<Sdk>;

  constructor(
    options: CredentialOptions & { readonly callsPerSecond: number },
    { clock, onApiCall }: { readonly clock: Clock; readonly onApiCall: (call: ApiCall) => void },
  ) {
    const { callsPerSecond, region, endpointUrl } = options;
    this.clock = clock;
    this.api = new ApiClient<Sdk>({
      clock,
      onApiCall,
      callsPerSecond,
      pauses: 'service',
      credentials: {
        get: (call) => this.source.get(call),
        renew: (used, refusal) => this.renew(used, refusal),
      },
      secrets: () => this.secrets(),
      answerIn: (error) => {
        const answer = (error as AwsFailure | undefined)?.$response;
        return answer === undefined ? undefined : { status: answer.statusCode, headers: answer.headers };
      },
      errorOf,
    });
    this.reads = this.api.lane({ callsPerSecond: callsPerSecond * READS_PER_CHANGE });
    this.others = this.api.lane({ callsPerSecond: Infinity, atOnce: OTHERS_AT_ONCE });
    this.source = new TokenSource<Sdk>({
      api: () => this.api,
      clock,
      operation: { service: 'sts', method: 'POST', operation: 'login' },
      service: () => 'the login to AWS',
      logIn: async () => {
        const identity = await readCredentials(options);
        const until = identity.expiration?.getTime();
        const lifeMs = until === undefined ? PERMANENT_MS : until - clock.now();
        return { token: new Sdk(identity, region, endpointUrl), lifeMs, status: undefined };
      },
      errorOf: loginErrorOf,
    });
  }

  /** Makes one call. `send` gets the clients with the present credentials. */
  send<T extends Answer>(
    { service, action, isTransfer = false, timeoutMs, changesSomething = !READING.test(action) }: CallOptions,
    call: Call,
    send: (sdk: Sdk, options: { readonly abortSignal: AbortSignal }) => Promise<T>,
  ): Promise<T> {
    const lane = isTransfer ? 'none' : service !== 'ec2' ? this.others : changesSomething ? undefined : this.reads;
    return this.api.send<T>(
      {
        service,
        method: changesSomething ? 'POST' : 'GET',
        operation: action,
        name: `${service} ${action}`,
        changesSomething,
        ...(lane === undefined ? {} : { lane }),
        ...(timeoutMs === undefined ? {} : { timeoutMs }),
        foreign: ({ $metadata }) =>
          $metadata.requestId === undefined ? 'the answer has no request id; is it one of AWS?' : undefined,
      },
      call,
      ({ credentials, signal, http }) =>
        send(credentials, { abortSignal: signal }).then((answer) => {
          const status = answer.$metadata.httpStatusCode;
          if (status !== undefined) http.answered({ status, headers: {} });
          return answer;
        }),
    );
  }

  stop(): void {
    this.api.stop();
    this.source.latest?.destroy();
  }

  /** Reads the credentials again if AWS refuses them. */
  private renew(used: Sdk, { error }: Refusal): boolean {
    if (!hasRefusedCredentials(error)) return false;
    this.source.refused(used);
    return true;
  }

  private secrets(): readonly (string | undefined)[] {
    const identity = this.source.latest?.identity;
    return [identity?.secretAccessKey, identity?.sessionToken];
  }
}
