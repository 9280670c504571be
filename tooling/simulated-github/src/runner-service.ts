/** The service that runners call: their tokens, their sessions, and the jobs that they get. */

import { BrokerError, unauthorized } from './errors.js';
import type { Dispatcher } from './dispatcher.js';
import type { EventLog } from './event-log.js';
import { IssuedTokens, tokenIn } from './issued-tokens.js';
import { runnerKey } from './jit-config.js';
import { isSignedBy, readJwt } from './jwt.js';
import type { Runners } from './runners.js';
import { newUuid, serviceTime, type GithubState } from './settings.js';
import type { Job, Runner } from './records.js';

/** Lifetime of a runner's token (ms). */
const TOKEN_MS = 3_600_000;
/** Maximum time until a runner's assertion expires (s). */
const MAX_ASSERTION_S = 600;

/** Message to a runner: a job to start, or to end. */
export type RunnerMessage =
  { readonly kind: 'job'; readonly job: Job } | { readonly kind: 'cancel'; readonly job: Job };

export interface RunnerServiceParts {
  readonly state: GithubState;
  readonly runners: Runners;
  readonly dispatcher: Dispatcher;
  readonly log: EventLog;
}

export class RunnerService {
  private readonly tokens: IssuedTokens<Runner>;

  constructor(private readonly parts: RunnerServiceParts) {
    this.tokens = new IssuedTokens(parts.state);
  }

  /** Returns a token for the runner that has signed the assertion, or undefined if there is none. */
  token(assertion: string, tokenUrl: string): string | undefined {
    const jwt = readJwt(assertion);
    const { iss, sub, aud, exp } = jwt?.claims ?? {};
    const now = serviceTime(this.parts.state) / 1000;
    const runner = typeof iss === 'string' ? this.parts.runners.withClientId(iss) : undefined;
    if (jwt === undefined || runner === undefined || sub !== iss || aud !== tokenUrl) return undefined;
    if (typeof exp !== 'number' || exp <= now || exp > now + MAX_ASSERTION_S) return undefined;
    if (!isSignedBy(jwt, runnerKey().publicKey)) return undefined;
    return this.tokens.issueJwt(runner.name, runner, TOKEN_MS).token;
  }

  /** Returns the runner of a call. Throws if its token is not valid or it is not registered any more. */
  check(authorization: string | undefined): Runner {
    const runner = this.tokens.grantOf(tokenIn(authorization, 'Bearer'));
    if (runner === undefined) throw unauthorized('The token is not valid or has expired');
    if (runner.isGone) throw new BrokerError(404, 'RunnerNotFound', `The runner ${runner.name} does not exist`);
    return runner;
  }

  /** Opens the session of a runner. Throws if it has one. */
  connect(runner: Runner): string {
    if (runner.session !== undefined) {
      throw new BrokerError(409, 'RunnerSessionConflict', `The runner ${runner.name} has an active session`);
    }
    runner.session = newUuid(this.parts.state);
    this.parts.log.add(`Runner ${runner.name} is online`);
    this.expectCall(runner);
    return runner.session;
  }

  /** Ends the session of a runner, which is offline from then on. */
  disconnect(runner: Runner): void {
    if (runner.session === undefined) return;
    runner.session = undefined;
    this.parts.log.add(`Runner ${runner.name} is offline`);
    runner.wake?.();
    this.parts.dispatcher.release(runner);
    this.parts.dispatcher.expectConnection(runner);
  }

  /** Returns the next message for a runner after waiting for it, or undefined if there is none in time. */
  async message(
    runner: Runner,
    session: string,
    isBusy: boolean,
    stop: AbortSignal,
  ): Promise<RunnerMessage | undefined> {
    if (runner.session !== session) throw new BrokerError(400, 'RunnerSessionInvalid', 'The session does not exist');
    const { clock, settings } = this.parts.state;
    const deadline = clock.monotonic() + settings.longPollMs;
    runner.openCalls += 1;
    runner.timer?.cancel();
    try {
      for (;;) {
        if (runner.isGone) throw new BrokerError(404, 'RunnerNotFound', `The runner ${runner.name} does not exist`);
        const found = stop.aborted ? undefined : messageFor(runner, isBusy);
        const leftMs = deadline - clock.monotonic();
        if (found !== undefined || leftMs <= 0 || stop.aborted || runner.session !== session) return found;
        await this.wait(runner, isBusy, leftMs, stop);
      }
    } finally {
      runner.openCalls -= 1;
      this.expectCall(runner);
    }
  }

  /** Records a call of a runner: it is offline if no further one follows in time. */
  expectCall(runner: Runner): void {
    runner.timer?.cancel();
    if (runner.openCalls > 0 || runner.isGone || runner.session === undefined) return;
    const { clock, settings } = this.parts.state;
    const expire = (): void => this.disconnect(runner);
    runner.timer = clock.schedule(settings.runnerTimeoutMs, expire, { background: true });
  }

  private async wait(runner: Runner, isBusy: boolean, ms: number, stop: AbortSignal): Promise<void> {
    const { dispatcher, state } = this.parts;
    const { waiting } = runner.scaleSet;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        timer.cancel();
        stop.removeEventListener('abort', done);
        waiting.delete(runner);
        runner.wake = undefined;
        resolve();
      };
      const timer = state.clock.schedule(ms, done, { background: true });
      stop.addEventListener('abort', done);
      runner.wake = done;
      if (isBusy) return;
      waiting.add(runner);
      dispatcher.serve(runner.scaleSet);
    });
  }
}

function messageFor({ job }: Runner, isBusy: boolean): RunnerMessage | undefined {
  if (job?.isCancelled === true) return { kind: 'cancel', job };
  return job === undefined || isBusy ? undefined : { kind: 'job', job };
}
