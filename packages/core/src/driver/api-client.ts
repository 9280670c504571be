/** The client through which all calls of a driver to its cloud go, whatever their transport. */

import { linkSignals } from '../runtime/abort.js';
import { abortReason, sleep, type Clock } from '../runtime/clock.js';
import { withDeadline, type Deadline } from '../runtime/deadline.js';
import type { Logger } from '../runtime/logger.js';
import { TimerQueue } from '../runtime/timer-queue.js';
import type { ApiCall } from './api.js';
import { Lane, Turn, type LaneOptions } from './api-lane.js';
import type { ApiCredentials, ApiOperation, ApiRequest, ErrorOf, PlannedRequest, Transport } from './api-request.js';
import { nameOfCall, outcomeOf, planned } from './api-request.js';
import { callApplied, isPartOf, recordCallError } from './applied-calls.js';
import type { Call } from './call.js';
import { deadlineOf, recordWait } from './call-waits.js';
import type { DriverError } from './errors.js';
import { AbortedError, isDriverError, ThrottledError, TimeoutError, toDriverError, TransientError } from './errors.js';
import { HttpExchange, type AnswerHead } from './http-exchange.js';
import { openCall } from './open-calls.js';
import { RateLimiter } from './rate-limiter.js';
import { removeSecrets } from './secrets.js';

export interface ApiClientOptions<C> {
  readonly clock: Clock;
  readonly onApiCall: (call: ApiCall) => void;
  readonly credentials: ApiCredentials<C>;
  readonly errorOf: ErrorOf;
  /**
   * Returns status and headers of the answer in an error of an SDK, for `Retry-After`, metrics and messages. Not needed
   * by transports that send their messages with `Attempt.http`.
   */
  readonly answerIn?: (error: unknown) => AnswerHead | undefined;
  /** Returns the passwords and tokens in use, which are removed from all texts of errors. */
  readonly secrets?: () => readonly (string | undefined)[];
  /** Rate that the lanes share, unless they have one of their own. Default: not limited. */
  readonly callsPerSecond?: number;
  /** The calls that wait if the cloud throttles one: those of all services (the default), or of the same service. */
  readonly pauses?: 'all' | 'service';
}

/**
 * Makes calls. A call waits for its turn in its lane, which does not count against its deadline, then ends by itself,
 * at its deadline, when its signal aborts, or at `stop`. Then it is reported to the metrics, and its failure is a
 * `DriverError` with an outcome, without secrets, that names the host and the status of the answer.
 *
 * With the SDK of a vendor, here that of AWS, the transport is `client.send`:
 *
 * ```ts
 * const api = new ApiClient({
 *   clock,
 *   onApiCall,
 *   callsPerSecond: config.callsPerSecond,
 *   // The SDK must neither repeat calls nor limit their rate: `maxAttempts: 1`, `retryMode: 'standard'`.
 *   credentials: { get: () => Promise.resolve(this.ec2), renew: () => this.readProfileAgain() },
 *   secrets: () => [this.secretKey],
 *   answerIn(error) {
 *     if (!(error instanceof EC2ServiceException) || error.$response === undefined) return undefined;
 *     const { statusCode: status, headers } = error.$response;
 *     return { status, headers };
 *   },
 *   // `ERRORS` is the table of the vendor's codes, see `ErrorTable`.
 *   errorOf(error, attempted) {
 *     if (!(error instanceof EC2ServiceException)) return connectionError(attempted, { cause: error });
 *     const { $metadata, name: code, message: text } = error;
 *     return errorOfAnswer(ERRORS, { status: $metadata.httpStatusCode, code, text, cause: error }, attempted);
 *   },
 * });
 * const reads = api.lane({ callsPerSecond: 10 * config.callsPerSecond });
 *
 * // Each answer of AWS has a request id; that of a proxy has none.
 * const withoutRequestId = ({ $metadata }: MetadataBearer): string | undefined =>
 *   $metadata.requestId === undefined ? 'the answer has no request id; a proxy may have sent it' : undefined;
 *
 * const { Reservations } = await api.send(
 *   { service: 'ec2', method: 'GET', operation: 'DescribeInstances', lane: reads, foreign: withoutRequestId },
 *   call,
 *   ({ credentials: ec2, signal }) => ec2.send(new DescribeInstancesCommand({}), { abortSignal: signal }),
 * );
 * ```
 *
 * Over HTTP, `fetchAnswer` is a transport. A transport of your own sends its messages with `Attempt.http`.
 */
export class ApiClient<C = undefined> {
  private readonly stopping = new AbortController();
  private readonly timers: TimerQueue;
  private readonly limiter: RateLimiter;
  private readonly usual: Lane;
  /** `Clock.monotonic` time (ms) until which the calls to a service are paused. */
  private readonly pausedUntil = new Map<string, number>();

  constructor(private readonly options: ApiClientOptions<C>) {
    this.timers = new TimerQueue(options.clock);
    this.limiter = new RateLimiter(options.clock, options.callsPerSecond ?? Infinity);
    this.usual = new Lane(this.limiter);
  }

  /** Returns a new lane, for requests that name it. */
  lane({ atOnce, callsPerSecond }: LaneOptions): Lane {
    const { clock } = this.options;
    return new Lane(callsPerSecond === undefined ? this.limiter : new RateLimiter(clock, callsPerSecond), atOnce);
  }

  /**
   * Makes a call in its turn, and repeats it once if the cloud refuses its credentials and there are others by then.
   * Resolves with the result of the transport.
   */
  async send<T>(request: ApiRequest<T>, call: Call, transport: Transport<T, C>): Promise<T> {
    const { clock, credentials } = this.options;
    const { signal, log } = call;
    const plan = this.planned(request, call);
    for (let isRepetition = false; ; isRepetition = true) {
      const queuedAt = clock.monotonic();
      const leave = await this.enter(plan, signal);
      recordWait(call, clock.monotonic() - queuedAt);
      const own: Call = { signal, log, deadline: deadlineOf(call) };
      const http = new HttpExchange(plan.name);
      let used: C;
      try {
        used = await credentials.get(own);
      } catch (error) {
        leave();
        throw this.failed(plan, error, http, signal);
      }
      try {
        const result = await this.attempt(plan, own, http, leave, (limited) =>
          transport({ signal: limited, log, http, credentials: used }),
        );
        if (plan.changesSomething) callApplied(signal);
        return result;
      } catch (error) {
        const failure = this.failed(plan, error, http, signal);
        if (isRepetition || !(await this.isRenewed(used, failure, http.status, log))) throw failure;
      }
    }
  }

  /**
   * Makes a call that obtains credentials, outside the lanes. Reports it unless its result has no status because it
   * needed no remote call.
   */
  logIn<T extends { readonly status: number | undefined }>(
    request: ApiOperation & { readonly name: string; readonly timeoutMs: number; readonly errorOf: ErrorOf },
    call: Call,
    transport: Transport<T, undefined>,
  ): Promise<T> {
    const plan: PlannedRequest<T> = {
      ...this.planned({ ...request, lane: 'none', changesSomething: false }, call),
      errorOf: request.errorOf,
      wasMade: ({ status }) => status !== undefined,
    };
    const http = new HttpExchange(request.name);
    const { log } = call;
    return this.attempt(plan, call, http, NOTHING, (signal) =>
      transport({ signal, log, http, credentials: undefined }),
    );
  }

  /** Runs work of several calls. Rejects with a `DriverError`, at once if the signal aborts, and at the deadline. */
  async within<T>(what: string, call: Call, work: (call: Call) => Promise<T>): Promise<T> {
    const { deadline, log } = call;
    const plan = this.planned<T>({ service: '', method: '', operation: '', name: what }, call);
    try {
      return await withDeadline(this.limits(plan, call), (signal) => {
        isPartOf(signal, call.signal);
        return work({ signal, deadline, log });
      });
    } catch (error) {
      throw removeSecrets(toDriverError(error), this.options.secrets?.());
    }
  }

  /** Aborts all calls, waiting ones and those in progress. */
  stop(): void {
    this.stopping.abort(new AbortedError('the provider was stopped'));
  }

  /** Returns the request with its defaults. Throws if its call must not be sent. */
  private planned<T>(request: ApiRequest<T>, call: Call): PlannedRequest<T> {
    const { signal } = call;
    const complete = planned(request, this.options.errorOf, this.usual);
    const { name } = complete;
    const outcome = 'not-applied';
    if (this.stopping.signal.aborted) throw new AbortedError(`${name}: the provider was stopped`, { outcome });
    if (signal.aborted) throw new AbortedError(`${name} was aborted`, { outcome, cause: abortReason(signal) });
    if (deadlineOf(call) > this.options.clock.monotonic()) return complete;
    throw new TimeoutError(`${name}: its deadline had passed before it was sent`, { outcome });
  }

  /** Waits for the turn of a call. Resolves with a function that ends the turn. */
  private async enter({ service, lane, name }: PlannedRequest<never>, signal: AbortSignal): Promise<() => void> {
    if (lane === 'none') return NOTHING;
    const leaveAtOnce = this.pauseOf(service) > 0 ? undefined : lane.tryEnter();
    if (leaveAtOnce !== undefined) return leaveAtOnce;
    const either = linkSignals(signal, this.stopping.signal);
    try {
      for (;;) {
        // A call to a paused service does not occupy a place, which calls to other services need.
        const pauseMs = this.pauseOf(service);
        if (pauseMs > 0) await sleep(this.options.clock, pauseMs, either.signal);
        const leave = await lane.enter(either.signal, () => this.pauseOf(service) <= 0);
        if (leave !== undefined) return leave;
      }
    } catch (error) {
      const cause = either.signal.aborted ? abortReason(either.signal) : error;
      throw new AbortedError(`${name} was aborted`, { outcome: 'not-applied', cause });
    } finally {
      either.unlink();
    }
  }

  /** Makes one call within its time limits, and reports it. */
  private async attempt<T>(
    request: PlannedRequest<T>,
    call: Call,
    http: HttpExchange,
    leave: () => void,
    send: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { clock, onApiCall } = this.options;
    const { name, service, method, operation, lane, wasMade } = request;
    const startedAt = clock.monotonic();
    const limits = this.limits(request, { ...call, deadline: Math.min(call.deadline, startedAt + request.timeoutMs) });
    const turn = new Turn(leave, this.timers, clock, () =>
      call.log.warn('An abandoned remote call is still running', { call: name }),
    );
    const end = openCall(onApiCall, {
      name: nameOfCall(request),
      startedAt,
      get host() {
        return http.host;
      },
      get isAnswered() {
        return http.status !== undefined;
      },
    });
    let status: ApiCall['status'];
    let isReported = true;
    try {
      const result = await withDeadline(limits, (signal) =>
        turn.use(() => this.judged(request, http, () => send(signal))),
      );
      status = http.status ?? 'ok';
      isReported = wasMade?.(result) ?? true;
      if (lane !== 'none') lane.limiter.settled();
      return result;
    } catch (error) {
      const failure = this.explained(error, http);
      status = statusOf(failure, http);
      if (lane !== 'none') this.settle(lane, service, failure);
      throw failure;
    } finally {
      end();
      const { host } = http;
      const durationMs = clock.monotonic() - startedAt;
      if (isReported) onApiCall({ service, method, operation, host, durationMs, status, log: call.log });
      turn.end();
    }
  }

  /** Runs a transport, and judges its result. Throws the `DriverError` of any failure. */
  private async judged<T>(request: PlannedRequest<T>, http: HttpExchange, send: () => Promise<T>): Promise<T> {
    const { name, changesSomething, foreign, errorOf } = request;
    const { clock, answerIn } = this.options;
    let result: T;
    try {
      result = await send();
    } catch (error) {
      if (http.refusal !== undefined) throw http.refusal;
      if (isDriverError(error)) throw error;
      const answer = answerIn?.(error);
      if (answer !== undefined) http.answered(answer);
      const now = clock.now();
      const { origin } = http;
      const [answeredAt, retryAfterMs] = [http.timeOfAnswer(now), http.retryAfterMs(now)];
      throw errorOf(error, { operation: name, changesSomething, now: answeredAt, retryAfterMs, origin });
    }
    const problem = foreign?.(result);
    if (problem !== undefined) throw new TransientError(`${name}: ${problem}`, { outcome: outcomeOf(request) });
    return result;
  }

  private limits(
    request: Pick<PlannedRequest<never>, 'name' | 'changesSomething'>,
    { signal, deadline }: Call,
  ): Deadline {
    const { name } = request;
    const { clock } = this.options;
    const stopped = this.stopping.signal;
    const outcome = outcomeOf(request);
    const startedAt = clock.monotonic();
    return {
      timers: this.timers,
      signal,
      others: [stopped],
      deadline,
      onDeadline: () => {
        const ms = Math.round(clock.monotonic() - startedAt);
        return new TimeoutError(`${name} had no answer in time (${ms} ms)`, { outcome });
      },
      onAbort: (cause) =>
        stopped.aborted && stopped.reason === cause
          ? cause
          : new AbortedError(`${name} was aborted`, { outcome, cause }),
    };
  }

  /** Records the failure of a call, for the outcome of the work that it belongs to. */
  private failed(request: PlannedRequest<never>, error: unknown, http: HttpExchange, signal: AbortSignal): DriverError {
    const failure = this.explained(error, http);
    if (request.changesSomething && failure.outcome !== 'not-applied') callApplied(signal);
    recordCallError(failure);
    return failure;
  }

  /** Removes secrets from an error, in place, and adds host, status and content type of the answer to its message. */
  private explained(error: unknown, http: HttpExchange): DriverError {
    const failure = removeSecrets(toDriverError(error), this.options.secrets?.());
    failure.message = http.explain(failure.message);
    return failure;
  }

  private async isRenewed(used: C, error: DriverError, status: number | undefined, log: Logger): Promise<boolean> {
    const isRefusal = (error.code === 'auth' || error.code === 'certificate') && error.outcome === 'not-applied';
    return isRefusal && (await this.options.credentials.renew(used, { error, status, log }));
  }

  private settle({ limiter }: Lane, service: string, failure: DriverError): void {
    if (this.options.pauses !== 'service' || failure.code !== 'throttled') {
      limiter.settled(failure);
      return;
    }
    // The pause that the cloud demands concerns one service; the rate is that of all.
    limiter.settled(new ThrottledError(failure.message));
    const until = this.options.clock.monotonic() + (failure.retryAfterMs ?? 0);
    this.pausedUntil.set(service, Math.max(until, this.pausedUntil.get(service) ?? 0));
  }

  /** Returns the remaining time (ms) for which calls to a service are paused; 0 or less if they are not. */
  private pauseOf(service: string): number {
    const until = this.pausedUntil.get(service);
    return until === undefined ? 0 : until - this.options.clock.monotonic();
  }
}

/** Returns the status of a failed call for metrics. */
function statusOf({ code }: DriverError, http: HttpExchange): ApiCall['status'] {
  if (code === 'timeout' || code === 'aborted') return undefined;
  const { status } = http;
  // The status of a success that was none, e.g. of a proxy's page, would count as an answer of the cloud.
  return status === undefined || status < 300 ? code : status;
}

function NOTHING(): void {
  return;
}
