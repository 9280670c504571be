/** A state machine in progress. The run advances the machine after each awaited event until it succeeds or fails. */

import { addAbortCallback, removeAbortCallback } from '../../runtime/abort-callbacks.js';
import type { Logger } from '../../runtime/logger.js';
import { abortReason, type Clock, type Timer } from '../../runtime/clock.js';
import type { TimerQueue } from '../../runtime/timer-queue.js';
import type { Call } from '../call.js';
import type { Instance, WorkInProgress } from '../api.js';
import { AbortedError, DriverError, TimeoutError, toDriverError } from '../errors.js';
import type { Advance, MachineCall, StateMachine } from '../state-machine-api.js';
import type { StepGuard } from './creation-guard.js';
import type { ListingFeed, ListingWaiter } from './listing-feed.js';
import { ProgressSaver } from './progress-saver.js';

/** Work to be done by a machine. */
export interface MachineWork {
  /** Description of the work for error messages, e.g. `launch of node 0000000001`. */
  readonly name: string;
  readonly kind: 'create' | 'delete';
  readonly nodeId: string;
  /** Creates the machine; called once, when the work begins. */
  readonly makeMachine: () => StateMachine;
  readonly guard?: StepGuard | undefined;
  readonly call: Call;
  /**
   * Returns a function that saves the current progress; undefined if there is nothing to save. Called whenever the
   * machine begins to wait in a new state.
   */
  readonly progress?: ((machine: StateMachine) => (() => Promise<void>) | undefined) | undefined;
  /** Receives the failures that the machine repeats by itself. */
  readonly onRetry?: ((error: DriverError) => void) | undefined;
  /** Returns the error that has delayed the machine so far, for the error at the deadline. */
  readonly obstacle?: () => DriverError | undefined;
}

type WaitingFor = 'nothing' | 'call' | 'listing' | 'delay' | 'save';

export type MachineResult = { readonly instance: Instance | undefined } | { readonly error: unknown };

export interface RunEnvironment {
  readonly clock: Clock;
  readonly timers: TimerQueue;
  readonly feed: ListingFeed;
}

/** Maximum number of consecutive steps without waiting. A machine that exceeds it is paused for other work. */
const STEPS_WITHOUT_WAITING = 100;

/**
 * Time limit for one call of a machine, in milliseconds. After it, the machine looks for the effect of the call instead
 * of waiting until the launch times out, which may take hours.
 */
const CALL_TIMEOUT_MS = 120_000;

export class MachineRun implements ListingWaiter {
  private readonly log: Logger;
  private readonly controller = new AbortController();
  private readonly signal = this.controller.signal;
  private waitingSince: number;
  private waitingFor: WaitingFor = 'nothing';
  private ended = false;
  /** Steps since the machine last yielded to the event loop. */
  private steps = 0;
  private delay: Timer | undefined;
  private deadlineTimer: Timer | undefined;
  private turn: Timer | undefined;
  private saver: ProgressSaver | undefined;
  private savedState: string | undefined;
  private pendingSave: (() => Promise<void>) | undefined;
  /** The failure that the machine waits to repeat; undefined if its last step reported none. */
  private failure: DriverError | undefined;

  /** `onEnd` is called once, after the machine's last step. */
  constructor(
    private readonly env: RunEnvironment,
    private readonly work: MachineWork,
    private readonly machine: StateMachine,
    private readonly startedAt: number,
    private readonly onEnd: (result: MachineResult) => void,
  ) {
    this.log = work.call.log;
    this.waitingSince = startedAt;
  }

  start(): void {
    addAbortCallback(this.work.call.signal, this.onAbort);
    this.deadlineTimer = this.env.timers.schedule(this.work.call.deadline, this.onDeadline);
    this.step();
  }

  /** Ends the machine in its current state. */
  abort(reason: Error): void {
    const message = `${this.work.name} was aborted ${this.place()}: ${reason.message}`;
    this.fail(new AbortedError(message, { cause: reason }));
  }

  /** Advances the machine after a new listing; called by the feed. */
  listed(): void {
    this.steps = 0;
    this.step();
  }

  /** Continues at once if it waits to repeat a call that has failed, unless the cloud has throttled it. */
  cloudAnswered(): void {
    const { delay, failure } = this;
    if (delay === undefined || failure === undefined || failure.code === 'throttled') return;
    delay.cancel();
    this.step();
  }

  inspect(): WorkInProgress {
    const now = this.env.clock.monotonic();
    return {
      kind: this.work.kind,
      nodeId: this.work.nodeId,
      externalId: this.machine.externalId,
      state: this.machine.state,
      ageMs: now - this.startedAt,
      waitingFor: this.waitingFor,
      waitingMs: now - this.waitingSince,
    };
  }

  private readonly step = (): void => {
    if (this.ended) return;
    this.delay = undefined;
    try {
      // Without the pause, a machine whose calls settle immediately would block the process.
      if (++this.steps > STEPS_WITHOUT_WAITING) this.pause(1);
      else this.advance(this.env.clock.monotonic());
    } catch (error) {
      this.failStep(toDriverError(error));
    }
  };

  /**
   * Ends a machine whose step threw. The step may have found a failed instance, so its external id is saved first:
   * otherwise the launcher would not know which instance to delete.
   */
  private failStep(failure: DriverError): void {
    if (this.work.kind === 'create') {
      try {
        this.saveProgress();
      } catch (error) {
        this.log.warn('The progress of a failed step could not be saved', { error });
      }
    }
    const saving = this.saver?.close();
    if (saving === undefined) {
      this.fail(failure);
      return;
    }
    this.waitFor('save');
    void saving.then(() => this.fail(failure));
  }

  private advance(now: number): void {
    // Drivers copy the call by spreading, so it must be an object of plain fields.
    const call: MachineCall = {
      signal: this.signal,
      deadline: Math.min(this.work.call.deadline, now + CALL_TIMEOUT_MS),
      log: this.log,
      listing: this.env.feed.latest,
      onRetry: this.onRetry,
    };
    this.failure = undefined;
    this.apply(this.guarded(call), now);
  }

  private readonly onRetry = (error: DriverError): void => {
    this.failure = error;
    this.work.onRetry?.(error);
  };

  private guarded(call: MachineCall): Advance {
    const { machine } = this;
    const { guard } = this.work;
    if (guard === undefined) return machine.advance(call);
    try {
      return guard.after(machine.advance(guard.before(call)));
    } catch (error) {
      throw guard.failed(error, call, machine);
    }
  }

  private apply(advance: Advance, now: number): void {
    switch (advance.next) {
      case 'call':
        this.waitFor('call', now);
        // Many calls settle immediately: progress is saved only if the machine still waits in the clock's next turn.
        this.turn ??= this.env.timers.schedule(now, this.onTurn);
        advance.settled.then(this.step, this.step);
        return;
      case 'listing':
        this.waitFor('listing');
        this.env.feed.wait(this);
        this.saveProgress();
        return;
      case 'delay':
        this.pause(delayOf(advance.ms));
        this.saveProgress();
        return;
      case 'complete':
        this.complete(advance.instance);
        return;
      default:
        throw this.driverDefect(`asks for ${JSON.stringify(advance)} next`);
    }
  }

  private pause(ms: number): void {
    this.steps = 0;
    this.waitFor('delay');
    this.delay = this.env.timers.schedule(this.env.clock.monotonic() + ms, this.step);
  }

  private complete(instance: Instance | undefined): void {
    if (this.work.kind === 'create' && instance?.ready !== true) {
      throw this.driverDefect(
        `is complete ${instance === undefined ? 'without an instance' : 'although its instance is not ready'}`,
      );
    }
    this.turn?.cancel();
    const saving = this.saver?.close();
    if (saving === undefined) {
      this.end({ instance });
      return;
    }
    this.waitFor('save');
    void saving.then(() => this.end({ instance }));
  }

  private readonly onTurn = (): void => {
    this.turn = undefined;
    this.steps = 0;
    try {
      this.saveProgress();
    } catch (error) {
      this.fail(toDriverError(error));
    }
  };

  private saveProgress(): void {
    const { progress } = this.work;
    if (progress === undefined || this.ended || this.machine.state === this.savedState) return;
    const save = progress(this.machine);
    if (save === undefined) return;
    this.savedState = this.machine.state;
    this.pendingSave = save;
    this.saver ??= new ProgressSaver(
      async () => this.pendingSave?.(),
      (error) => this.failToSave(error),
    );
    this.saver.request();
  }

  /** Fails with the unchanged error, which may mean that the node now has another owner. */
  private failToSave(error: unknown): void {
    if (this.ended) this.log.debug('Progress was not saved; its launch or deletion has ended', { error });
    else this.fail(error);
  }

  private readonly onAbort = (): void => this.abort(abortReason(this.work.call.signal));

  private readonly onDeadline = (): void => {
    const age = Math.round(this.env.clock.monotonic() - this.startedAt);
    const cause = this.work.obstacle?.() ?? (this.waitingFor === 'listing' ? this.env.feed.lastError : undefined);
    const reason = cause === undefined ? '' : `; the last failure was: ${cause.message}`;
    this.fail(new TimeoutError(`${this.work.name} did not end within ${age} ms, ${this.place()}${reason}`, { cause }));
  };

  private place(): string {
    const what = this.waitingFor === 'nothing' ? '' : `, waiting for a ${this.waitingFor}`;
    return `in state "${this.machine.state}"${what}`;
  }

  private waitFor(what: WaitingFor, now = this.env.clock.monotonic()): void {
    this.waitingFor = what;
    this.waitingSince = now;
  }

  private driverDefect(what: string): DriverError {
    return new DriverError(
      'unexpected',
      `${this.work.name}: the state machine ${what}; this is a defect of the driver`,
    );
  }

  private fail(error: unknown): void {
    if (this.ended) return;
    this.end({ error });
    this.controller.abort(error);
  }

  private end(result: MachineResult): void {
    if (this.ended) return;
    this.ended = true;
    removeAbortCallback(this.work.call.signal, this.onAbort);
    this.deadlineTimer?.cancel();
    this.delay?.cancel();
    this.turn?.cancel();
    void this.saver?.close();
    this.env.feed.cancel(this);
    this.onEnd(result);
  }
}

function delayOf(ms: number): number {
  if (Number.isNaN(ms)) throw new DriverError('unexpected', 'a state machine asks for a delay that is not a number');
  return Math.max(ms, 1);
}
