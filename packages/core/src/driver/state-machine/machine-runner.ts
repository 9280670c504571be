/** Runs the state machines of one provider. */

import { abortReason } from '../../runtime/clock.js';
import type { Instance, WorkInProgress } from '../api.js';
import { AbortedError, TimeoutError, toDriverError } from '../errors.js';
import type { StateMachine } from '../state-machine-api.js';
import { MachineRun, type MachineWork, type RunEnvironment } from './machine-run.js';

export class MachineRunner {
  private readonly runs = new Set<MachineRun>();
  private stopped = false;

  constructor(private readonly env: RunEnvironment) {}

  /**
   * Runs a machine to its end. Rejects with the machine's `DriverError`, with `AbortedError` if the call's signal
   * aborts or the runner stops, with `TimeoutError` at the call's deadline, or with the unchanged error of a failed
   * save. The machine is not used afterwards.
   */
  run(work: MachineWork): Promise<Instance | undefined> {
    return new Promise((resolve, reject) => {
      const now = this.env.clock.monotonic();
      this.checkStart(work, now);
      const run: MachineRun = new MachineRun(this.env, work, makeMachine(work), now, (result) => {
        this.runs.delete(run);
        // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- the error of the work, unchanged
        if ('error' in result) reject(result.error);
        else resolve(result.instance);
      });
      this.runs.add(run);
      run.start();
    });
  }

  inspect(): WorkInProgress[] {
    return [...this.runs].map((run) => run.inspect());
  }

  /** Continues the machines that wait to repeat a call that has failed. */
  cloudAnswered(): void {
    for (const run of [...this.runs]) run.cloudAnswered();
  }

  /** Ends every machine in its current state, and starts no further machines. */
  stop(): void {
    this.stopped = true;
    const reason = new AbortedError('the provider was stopped');
    for (const run of this.runs) run.abort(reason);
  }

  private checkStart({ name, call }: MachineWork, now: number): void {
    const { signal, deadline } = call;
    if (this.stopped) throw new AbortedError(`${name}: the provider was stopped`);
    if (signal.aborted) throw new AbortedError(`${name} was aborted`, { cause: abortReason(signal) });
    if (deadline <= now) throw new TimeoutError(`${name}: its deadline has passed`);
  }
}

function makeMachine(work: MachineWork): StateMachine {
  try {
    return work.makeMachine();
  } catch (error) {
    throw toDriverError(error);
  }
}
