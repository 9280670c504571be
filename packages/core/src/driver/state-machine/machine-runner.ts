/** The state machines of one provider that are in progress. */

import { abortReason } from '../../runtime/clock.js';
import type { Instance, WorkInProgress } from '../api.js';
import { AbortedError, TimeoutError, toDriverError } from '../errors.js';
import type { StateMachine } from '../state-machine-api.js';
import { MachineRun, type MachineResult, type MachineWork, type RunEnvironment } from './machine-run.js';

export class MachineRunner {
  private readonly runs = new Set<MachineRun>();
  private stopped = false;

  constructor(private readonly env: RunEnvironment) {}

  /** Machines in progress. */
  get size(): number {
    return this.runs.size;
  }

  /**
   * Drives a machine to its end. Rejects with the `DriverError` with which it failed, with `AbortedError` when the call's
   * signal aborts or the runner stops, with `TimeoutError` at the call's deadline, or with the error of a failed save as it
   * is. After that, the machine is not touched again.
   */
  async run(work: MachineWork): Promise<Instance | undefined> {
    const { signal, deadline } = work.call;
    if (this.stopped) throw new AbortedError(`${work.name}: the provider was stopped`);
    if (signal.aborted) throw new AbortedError(`${work.name} was aborted`, { cause: abortReason(signal) });
    if (deadline <= this.env.clock.monotonic()) throw new TimeoutError(`${work.name}: its deadline has passed`);
    const machine = makeMachine(work);
    const result = await new Promise<MachineResult>((resolve) => {
      const run: MachineRun = new MachineRun(this.env, work, machine, (ending) => {
        this.runs.delete(run);
        resolve(ending);
      });
      this.runs.add(run);
      run.start();
    });
    if ('error' in result) throw result.error;
    return result.instance;
  }

  inspect(): WorkInProgress[] {
    return [...this.runs].map((run) => run.inspect());
  }

  /** Ends every machine where it stands, and starts none any more. */
  stop(): void {
    this.stopped = true;
    const reason = new AbortedError('the provider was stopped');
    for (const run of this.runs) run.abort(reason);
  }
}

function makeMachine(work: MachineWork): StateMachine {
  try {
    return work.makeMachine();
  } catch (error) {
    throw toDriverError(error);
  }
}
