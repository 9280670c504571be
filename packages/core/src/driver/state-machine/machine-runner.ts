/** Runs the state machines of one provider. */

import { abortReason } from '../../runtime/clock.js';
import type { Instance, WorkInProgress } from '../api.js';
import { AbortedError, TimeoutError, toDriverError } from '../errors.js';
import type { StateMachine } from '../state-machine-api.js';
import { MachineRun, type MachineResult, type MachineWork, type RunEnvironment } from './machine-run.js';

export class MachineRunner {
  private readonly runs = new Set<MachineRun>();
  private stopped = false;

  constructor(private readonly env: RunEnvironment) {}

  /** Number of machines in progress. */
  get size(): number {
    return this.runs.size;
  }

  /**
   * Runs a machine to its end. Rejects with the machine's `DriverError`, with `AbortedError` if the call's signal
   * aborts or the runner stops, with `TimeoutError` at the call's deadline, or with the unchanged error of a failed
   * save. The machine is not used afterwards.
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

  /** Ends every machine in its current state, and starts no further machines. */
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
